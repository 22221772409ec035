//! The fragments of `--config`: what a kernel with them can do.

use super::c::Place;
use super::common::outcome::outcome;
use super::exec;
use std::path::Path;

/// A file system without a library: it answers until somebody asks for its root's attributes.
const FUSE: &str = r#"
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
    }"#;

/// A program that the kernel accepts, and a socket to attach it to.
const BPF: &str = r#"
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
    }"#;

/// Each fragment makes a kernel that can do what it is for. All of them and a user's file are one
/// kernel, which takes minutes to build.
#[test]
fn kernels_with_more_options_can_do_more() {
    let place = Place::new();
    let own = place.file("own.config");
    place.write("own.config", "CONFIG_TMPFS_QUOTA=y\n");
    place.compile("fuse", FUSE, &[]);
    place.compile("bpf", BPF, &[]);
    let (fuse, bpf) = (place.file("fuse"), place.file("bpf"));
    let configs = ["bpf", "bridge", "cgroup", "coredump", "fuse", "loop", "overlay", &own];
    let programs = "cat dd grep gzip ip losetup ls mkdir mkfs.ext4 mount zcat";
    let found = |name| ["/bin", "/sbin"].map(|directory| format!("{directory}/{name}"));
    let programs = programs.split(' ').flat_map(found).filter(|path| Path::new(path).exists());
    let carried: Vec<_> = programs.chain([fuse.clone(), bpf.clone()]).collect();
    let options: Vec<_> = configs.iter().flat_map(|name| ["--config", *name]).collect();
    let carried = carried.iter().flat_map(|path| ["--carry", path.as_str()]);
    let options: Vec<_> = options.into_iter().chain(carried).collect();
    let text = "set -e
        zcat /proc/config.gz | grep CONFIG_TMPFS_QUOTA=y
        mkdir /sys/fs/cgroup/new; echo $$ >/sys/fs/cgroup/new/cgroup.procs
        echo +memory +pids +cpu >/sys/fs/cgroup/cgroup.subtree_control
        cat /proc/self/cgroup; ls /sys/fs/cgroup/new/memory.max
        mkdir /l /o; mount -t tmpfs none /o; mkdir /o/u /o/w /o/m; echo low >/l/file
        mount -t overlay -o lowerdir=/l,upperdir=/o/u,workdir=/o/w none /o/m
        echo high >/o/m/file; cat /l/file /o/u/file
        dd if=/dev/zero of=/disk bs=1M count=4 2>/dev/null; mkfs.ext4 -q /disk
        mkdir /d; mount -o loop /disk /d; echo loop >/d/file; cat /d/file
        ip link add one type veth peer name two; ip link add bridge0 type bridge
        ip link set one master bridge0; ls /sys/class/net/bridge0/brif
        cd /tmp; ulimit -c unlimited; sh -c 'kill -SEGV $$' 2>/dev/null || ls core*
        dd if=/sys/kernel/btf/vmlinux bs=2 count=1 2>/dev/null | grep -c .
        $0 && echo fuse; $1 && echo bpf";
    let said = outcome(&mut exec(&options, &["/bin/sh", "-c", text, &fuse, &bpf]));
    let expected = "CONFIG_TMPFS_QUOTA=y\n0::/new\n/sys/fs/cgroup/new/memory.max\nlow\nhigh\nloop\n\
                    one\ncore\n1\nfuse\nbpf\n";
    assert_eq!((said.stdout.as_str(), said.stderr.as_str(), said.status), (expected, "", Some(0)));
}
