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
