/* Uses ptrace or kcov itself. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int count, char **words) {
    if (words[1][0] == 'p')
        return ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM;
    int fd = open("/sys/kernel/debug/kcov", O_RDWR);
    if (fd < 0 || ioctl(fd, _IOR('c', 1, unsigned long), 512))
        return 2;
    if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
        return 3;
    return ioctl(fd, _IO('c', 100), 0) != -1 || errno != EBUSY;
}
