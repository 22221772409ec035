/* Work for the workers of io_uring and vhost: words[1] reads by the first. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/vhost.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char text[64];
int main(int count, char **words) {
    struct io_uring_params setup;
    struct io_uring_sqe *sqe;
    char *ring;
    int fd, vhost;
    memset(&setup, 0, sizeof setup);
    fd = syscall(SYS_io_uring_setup, 4, &setup);
    ring = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    sqe = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    if (fd < 0 || ring == MAP_FAILED || sqe == MAP_FAILED)
        return 1;
    sqe->opcode = IORING_OP_READ;
    sqe->flags = IOSQE_ASYNC;
    sqe->fd = open("/proc/uptime", O_RDONLY);
    sqe->addr = (unsigned long)text;
    sqe->len = sizeof text;
    for (int i = atoi(words[1]); i > 0; i--) {
        ++*(volatile unsigned *)(ring + setup.sq_off.tail);
        if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1)
            return 2;
        ++*(volatile unsigned *)(ring + setup.cq_off.head);
    }
    if (!strchr(text, '.'))
        return 3;
    // Its worker gets something to do when the file is closed.
    vhost = open("/dev/vhost-net", O_RDWR);
    if (vhost < 0 || ioctl(vhost, VHOST_SET_OWNER))
        return 4;
    close(vhost);
    return 0;
}
