/* The programs of the tests in guests. A macro selects one. */

#ifdef OWN
/* Prints its word for itself, its path, and a file beside its directory. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char own[4096], path[8192], line[100];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (argc < 2 || length < 0) return 1;
    own[length] = 0;
    printf("%s\n%s\n", argv[0], own);
    snprintf(path, sizeof path, "%s/%s", dirname(own), argv[1]);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) return perror(path), 2;
    fputs(line, stdout);
    return 0;
}
#endif

#ifdef SYSTEM
/* Prints the status of `system("exit 4")`. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(void) {
    printf("%d\n", WEXITSTATUS(system("exit 4")));
    return 0;
}
#endif

#ifdef WHO
/* Prints its effective user. */
#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("%d\n", (int)geteuid()) < 0; }
#endif

#ifdef NAMED
/* Prints what its libraries say, and runs another program. */
#include <stdio.h>
#include <unistd.h>
const char *name(void);
int own(void);
int main(int argc, char **argv) {
    printf("%s %d\n", name(), own());
    fflush(stdout);
    if (argc > 1) return execv(argv[1], (char *[]){argv[1], 0});
    return 0;
}
#endif

#ifdef LOAD
/* Prints what a library says that it opens. */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!library) return puts(dlerror()), 1;
    const char *(*name)(void) = dlsym(library, "name");
    return puts(name()) < 0;
}
#endif

#ifdef CANCEL
/* Cancels a thread. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *wait_for_it(void *unused) { return pause(), unused; }
int main(void) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, 0, wait_for_it, 0)) return 1;
    if (pthread_cancel(thread) || pthread_join(thread, &result)) return 2;
    return puts(result == PTHREAD_CANCELED ? "cancelled" : "not") < 0;
}
#endif

#ifdef POSIX
/* Uses shared memory, a semaphore, a message queue and a pseudoterminal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#define MUST(it) if (!(it)) return perror(#it), 1
int main(void) {
    int shared = shm_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600);
    MUST(shared >= 0 && ftruncate(shared, 4096) == 0);
    MUST(mmap(0, 4096, PROT_WRITE, MAP_SHARED, shared, 0) != MAP_FAILED);
    MUST(shm_unlink("/kcov-vm-test") == 0);
    sem_t *semaphore = sem_open("/kcov-vm-test", O_CREAT, 0600, 1);
    MUST(semaphore != SEM_FAILED && sem_wait(semaphore) == 0);
    MUST(sem_unlink("/kcov-vm-test") == 0);
    mqd_t queue = mq_open("/kcov-vm-test", O_CREAT | O_RDWR, 0600, 0);
    MUST(queue >= 0 && mq_send(queue, "x", 1, 0) == 0);
    MUST(mq_unlink("/kcov-vm-test") == 0);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    MUST(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    MUST(other >= 0 && isatty(other));
    return puts("all work") < 0;
}
#endif

#ifdef FUSE
/* A file system without a library: it answers until somebody asks for its root's attributes. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static int answer(int device, unsigned opcode, void *body, size_t size) {
    static char question[1 << 17], whole[256];
    struct fuse_in_header *in = (void *)question;
    struct fuse_out_header *out = (void *)whole;
    if (read(device, question, sizeof question) < 0) return perror("read"), 0;
    if (in->opcode != opcode) return printf("opcode %u\n", in->opcode), 0;
    *out = (struct fuse_out_header){ .len = sizeof *out + size, .unique = in->unique };
    memcpy(out + 1, body, size);
    return write(device, whole, out->len) == out->len;
}
int main(void) {
    int device = open("/dev/fuse", O_RDWR), status;
    char options[100];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    if (mount("test", "/mnt", "fuse", 0, options)) return perror("mount"), 1;
    struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
    if (!answer(device, FUSE_INIT, &init, sizeof init)) return 2;
    if (fork() == 0) {
        struct stat stat_;
        return stat("/mnt", &stat_) || stat_.st_size != 12345;
    }
    struct fuse_attr_out attr = { .attr = { .ino = 1, .mode = S_IFDIR | 0755, .size = 12345 } };
    if (!answer(device, FUSE_GETATTR, &attr, sizeof attr)) return 3;
    return wait(&status) < 0 || status;
}
#endif

#ifdef BPF
/* A program that the kernel accepts, and a socket to attach it to. */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    struct bpf_insn code[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 3 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insns = (uintptr_t)code, .insn_cnt = 2,
        .license = (uintptr_t)"GPL",
    };
    int program = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr), ends[2];
    char text[16];
    if (program < 0) return perror("BPF_PROG_LOAD"), 1;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return perror("socketpair"), 2;
    if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof program))
        return perror("SO_ATTACH_BPF"), 3;
    /* Each datagram is cut to three bytes. */
    return write(ends[0], "12345", 5) != 5 || read(ends[1], text, sizeof text) != 3;
}
#endif

#ifdef FOLLOW
/* Threads, a child, and exec in a thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *exec) {
    pthread_setname_np(pthread_self(), "a worker");
    if (exec)
        execl("/bin/true", "true", (char *)0);
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    if (fork() == 0) {
        pthread_create(&thread, 0, work, "");
        pause();
    }
    wait(0);
    return 7;
}
#endif

#ifdef MANY_THREADS
/* 60 threads at once. */
#include <pthread.h>
#define THREADS 60
static pthread_barrier_t all;
static void *work(void *unused) {
    pthread_barrier_wait(&all);
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all, 0, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], 0, work, 0))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 7;
}
#endif

#ifdef FILTER
/* Threads with a filter: words[1] for the system call words[2]. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *work(void *unused) { return unused; }
int main(int count, char **words) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, strtoul(words[2], 0, 0), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, strtoul(words[1], 0, 0)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { 4, filter };
    pthread_t thread;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 1;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, 0, work, 0) || pthread_join(thread, 0))
            return 2;
    return 7;
}
#endif

#ifdef WORKERS
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
#endif

#ifdef PTRACE
/* Asks for a tracer, although it has one. */
#include <errno.h>
#include <sys/ptrace.h>
int main(void) {
    return ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM;
}
#endif
