//! The key of a build: a digest of everything that determines its result.

use crate::error::{OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::kernel::Compiler;
use crate::source::Source;
use crate::target::{Kind, Target};
use std::fs;
use std::path::{Path, PathBuf};

/// Raise it whenever this program builds differently from the same ingredients.
const RECIPE: u32 = 1;

/// Keeps relocations in `vmlinux.unstripped`, and one for each call.
const RELOCATIONS: [&str; 2] =
    ["CONFIG_ARCH_VMLINUX_NEEDS_RELOCS=y", "KCFLAGS=-fno-optimize-sibling-calls"];

/// The ingredients of a kernel.
#[derive(Clone, Debug)]
pub struct Ingredients {
    /// A line for each; the key is its digest.
    text: String,
    /// The text of the configuration fragments, in order.
    pub config: String,
    /// The patch files, in order.
    pub patches: Vec<PathBuf>,
    /// The compiler.
    pub compiler: Compiler,
}

impl Ingredients {
    /// Collects the ingredients of the target's kernel.
    pub fn of(target: &Target, source: &Source, compiler: &Compiler) -> Result<Self> {
        let read =
            |path: &PathBuf| fs::read_to_string(path).or_unavailable(Phase::Build, path.display());
        let configs = target.config.iter().map(read).collect::<Result<Vec<_>>>()?;
        let patches = target.patches.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut text = format!("recipe {RECIPE}\nsource {}\n", source.identity());
        for (name, files) in [("config", &configs), ("patch", &patches)] {
            let line = |file: &String| format!("{name} {}\n", hash::bytes(file.as_bytes()));
            text.extend(files.iter().map(line));
        }
        text += &format!("compiler {}\n", compiler.version);
        text += &format!("make {}\n", make_arguments(target).join(" "));
        text.extend(target.modules.iter().map(|module| format!("module {module}\n")));
        let (config, patches) = (configs.join("\n"), target.patches.clone());
        Ok(Self { text, config, patches, compiler: compiler.clone() })
    }

    /// The key.
    pub fn key(&self) -> String {
        hash::bytes(self.text.as_bytes())
    }

    /// The key of the path of a tree and all ingredients except its content.
    pub fn key_in(&self, tree: &Path) -> String {
        let rest = self.text.lines().filter(|line| !line.starts_with("source "));
        let rest = rest.collect::<Vec<_>>().join("\n");
        hash::bytes(format!("{}\n{rest}", tree.display()).as_bytes())
    }

    /// The digested text, stored next to the kernel.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The arguments for `make`, except those that depend on the key or the machine.
pub fn make_arguments(target: &Target) -> Vec<String> {
    let arch = target.arch;
    let cross = (!arch.is_host()).then(|| format!("CROSS_COMPILE={}", arch.prefix()));
    let (make, sub, image) = match target.kind {
        Kind::Uml => {
            let sub = (!arch.is_host()).then(|| format!("SUBARCH={}", arch.make));
            ("um", sub, "vmlinux")
        }
        Kind::Qemu => (arch.make, None, arch.image[0]),
        Kind::Netbsd => return Vec::new(),
    };
    let own = [Some(format!("ARCH={make}")), sub, cross, Some(image.into())];
    let relocations = arch.keeps_relocations().then_some(RELOCATIONS).into_iter().flatten();
    let more = relocations.map(ToString::to_string).chain(target.make.iter().cloned());
    own.into_iter().flatten().chain(more).collect()
}

/// The arguments of a whole build: these and the modules, if the target has any.
pub fn build_arguments(target: &Target) -> Vec<String> {
    let modules = (!target.modules.is_empty()).then(|| "modules".into());
    make_arguments(target).into_iter().chain(modules).collect()
}
