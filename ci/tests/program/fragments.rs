//! The fragments of `--config`: what a kernel with them can do.

use super::common::outcome::outcome;
use super::common::place::Place;
use super::exec;
use std::path::Path;

/// Each fragment makes a kernel that can do what it is for. All of them and a user's file are one
/// kernel, which takes minutes to build.
#[test]
fn kernels_with_more_options_can_do_more() {
    let place = Place::new();
    let own = place.file("own.config");
    place.write("own.config", "CONFIG_TMPFS_QUOTA=y\n");
    place.compile("fuse", include_str!("../c/fuse.c"), &[]);
    place.compile("bpf", include_str!("../c/bpf.c"), &[]);
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
