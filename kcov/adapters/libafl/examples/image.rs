//! Fuzzes the mounting of file system images with bytes. Needs Linux with loop devices, such as the
//! target `linux-uml-fuzz`, and root.

#[cfg(target_os = "linux")]
mod linux {
    use kcov_libafl::Fuzz;
    use libafl::executors::ExitKind;
    use rustix::fs::{Dir, MemfdFlags, Mode, OFlags, memfd_create, open};
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::fs::{File, create_dir_all};
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::fs::FileExt;

    const KIND: &str = "vfat";
    const LOOP: &str = "/dev/loop0";
    const DIRECTORY: &str = "/tmp/image";
    /// Bytes of an image. Those after the input are zero.
    const SIZE: usize = 64 << 10;

    const LOOP_SET_FD: libc::Ioctl = 0x4c00;
    const BLKFLSBUF: libc::Ioctl = 0x1261;

    /// An empty file system of FAT12 with 128 sectors: a boot sector, a table and a root directory.
    fn seed() -> Vec<u8> {
        let mut image = vec![0; 3 * 512];
        let geometry = [0, 2, 1, 1, 0, 1, 16, 0, 128, 0, 0xf8, 1, 0];
        image[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
        image[11..24].copy_from_slice(&geometry);
        image[510..515].copy_from_slice(&[0x55, 0xaa, 0xf8, 0xff, 0xff]);
        image
    }

    fn ioctl(device: &OwnedFd, request: libc::Ioctl, argument: i32) -> io::Result<()> {
        // SAFETY: neither request takes an address.
        match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Mounts the image in the loop device, and lists its root.
    fn list() -> rustix::io::Result<()> {
        mount(LOOP, DIRECTORY, KIND, MountFlags::empty(), None)?;
        let listed = open(DIRECTORY, OFlags::DIRECTORY, Mode::empty())
            .and_then(|root| Dir::read_from(root)?.try_for_each(|entry| entry.map(drop)));
        unmount(DIRECTORY, UnmountFlags::empty())?;
        listed
    }

    fn run(device: &OwnedFd, image: &File, input: &[u8]) -> io::Result<()> {
        let mut bytes = input.to_vec();
        bytes.resize(SIZE, 0);
        image.write_all_at(&bytes, 0)?;
        // The kernel forgets the image before.
        ioctl(device, BLKFLSBUF, 0)?;
        // It refuses most images.
        let _ = list();
        Ok(())
    }

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        create_dir_all(DIRECTORY)?;
        let image = File::from(memfd_create("image", MemfdFlags::empty())?);
        image.set_len(SIZE as u64)?;
        ioctl(&open(LOOP, OFlags::RDWR, Mode::empty())?, LOOP_SET_FD, image.as_raw_fd())?;
        // The kernel mounts no device that is open for writing.
        let device = open(LOOP, OFlags::RDONLY, Mode::empty())?;
        Fuzz::new().args()?.bytes(&[&seed()], |input| {
            run(&device, &image, input).expect("the loop device takes an image");
            ExitKind::Ok
        })?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
use linux::main;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("image needs Linux");
}
