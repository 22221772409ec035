//! Identifies kernels, and reads their images.

use crate::error::Error;
use addr2line::Loader;
use object::elf::{self, FileHeader64, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::NoteIterator;
use object::{
    NativeEndian, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, ReadCache,
};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Identifies a build of a kernel.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// The release.
    pub release: String,
    /// The linker's build id, in hexadecimal.
    pub build: Option<String>,
    /// The line in `/proc/version`, with the compiler and the build's time.
    pub banner: Option<String>,
}

impl Kernel {
    /// Identifies the running kernel.
    pub fn running() -> Result<Kernel, Error> {
        let banner = fs::read_to_string("/proc/version").map_err(Error::of("/proc/version"))?;
        // Missing if the linker made no build id.
        let notes = fs::read("/sys/kernel/notes").unwrap_or_default();
        let notes = NoteIterator::<FileHeader64<NativeEndian>>::new(NativeEndian, 4, &notes);
        let mut build = None;
        if let Ok(mut notes) = notes {
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU
                    && note.n_type(NativeEndian) == elf::NT_GNU_BUILD_ID
                {
                    build = Some(hexadecimal(note.desc()));
                }
            }
        }
        Ok(Kernel::of(build, banner))
    }

    fn of(build: Option<String>, banner: String) -> Kernel {
        let banner = banner.trim_end_matches(['\0', '\n']).to_owned();
        let release = banner.split(' ').nth(2).unwrap_or_default().to_owned();
        Kernel { release, build, banner: Some(banner).filter(|text| !text.is_empty()) }
    }

    /// Whether both are the same build, or `None` if they have nothing to compare.
    pub fn is(&self, other: &Kernel) -> Option<bool> {
        let same = |a: &Option<String>, b: &Option<String>| Some(a.as_ref()? == b.as_ref()?);
        same(&self.build, &other.build).or_else(|| same(&self.banner, &other.banner))
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let release = if self.release.is_empty() { "of unknown release" } else { &self.release };
        let build = self.build.as_deref().unwrap_or("unknown");
        write!(f, "Linux {release} (build id {build})")
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A kernel's ELF file, `vmlinux`.
pub struct Image {
    /// Its path.
    pub file: PathBuf,
    /// The file, open: a build may replace it while a command runs.
    open: File,
    /// The kernel in it.
    pub kernel: Kernel,
    /// The addresses of its code.
    pub code: Vec<Range<u64>>,
}

impl Image {
    /// Reads a file. The error says what to do if it is not a kernel's image.
    pub fn read(file: &Path) -> Result<Image, Error> {
        let fail = |why: &dyn Display| Error::about(file.display(), why);
        let metadata = fs::metadata(file).map_err(Error::of(file.display()))?;
        if !metadata.is_file() {
            return Err(fail(&"is not a regular file"));
        }
        let mut start = Vec::new();
        let open = File::open(file).map_err(Error::of(file.display()))?;
        let read = (&open).take(4).read_to_end(&mut start);
        read.map_err(Error::of(file.display()))?;
        if start != elf::ELFMAG {
            let why =
                "is not a kernel's image (ELF): name the file `vmlinux` of its build, unpacked";
            return Err(fail(&why));
        }
        // The file may have hundreds of megabytes. This reads only what it needs.
        let cache = ReadCache::new(&open);
        let parsed = object::File::parse(&cache).map_err(|error| fail(&error))?;
        if parsed.symbols().next().is_none() {
            return Err(fail(&"has no symbols: name the image from before it was stripped"));
        }
        // Linux's `init/version.c` has defined it since 2.6.
        let banner = parsed.symbol_by_name("linux_banner");
        let Some(banner) = banner.filter(|_| parsed.kind() != ObjectKind::Relocatable) else {
            return Err(fail(&"is not a kernel's image: name the file `vmlinux` of its build"));
        };
        let (start, size) = (banner.address(), banner.size());
        let banner = parsed.sections().find_map(|section| section.data_range(start, size).ok()?);
        let build = parsed.build_id().ok().flatten().map(hexadecimal);
        // A file with only debug information lacks the text.
        let banner = String::from_utf8_lossy(banner.unwrap_or_default()).into_owned();
        let code = parsed.sections().filter_map(|section| match section.flags() {
            object::SectionFlags::Elf { sh_flags } => {
                let all = u64::from(SHF_ALLOC | SHF_EXECINSTR);
                (sh_flags & all == all)
                    .then(|| section.address()..section.address() + section.size())
            }
            _ => None,
        });
        let code = code.collect();
        let kernel = Kernel::of(build, banner);
        let image = Image { file: file.to_owned(), kernel, code, open };
        image.try_load().map_err(|error| fail(&error))?;
        Ok(image)
    }

    fn try_load(&self) -> Result<Loader, Box<dyn std::error::Error>> {
        Loader::new(format!("/proc/self/fd/{}", self.open.as_raw_fd()))
    }

    /// What finds functions and lines. It keeps the debug information that it has read.
    pub fn loader(&self) -> Loader {
        self.try_load().expect("the file was loaded before")
    }
}
