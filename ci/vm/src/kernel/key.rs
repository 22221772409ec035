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
    /// One line each; the key is their digest.
    lines: Vec<String>,
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
        let arguments = make_arguments(target).join(" ");
        let mut lines =
            lines(&source.identity(), &configs, &patches, &compiler.identity(), &arguments);
        lines.extend(target.modules.iter().map(|module| format!("module {module}\n")));
        let (config, patches) = (configs.join("\n"), target.patches.clone());
        Ok(Self { lines, config, patches, compiler: compiler.clone() })
    }

    /// The key.
    pub fn key(&self) -> String {
        hash::bytes(self.to_text().as_bytes())
    }

    /// The key of the path of a tree and all ingredients except its content.
    pub fn key_in(&self, tree: &Path) -> String {
        let rest = self.lines.iter().filter(|line| !line.starts_with("source "));
        let rest = rest.map(String::as_str).collect::<String>();
        hash::bytes(format!("{}\n{rest}", tree.display()).as_bytes())
    }

    /// The digested text, stored next to the kernel.
    pub fn to_text(&self) -> String {
        self.lines.concat()
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

fn lines(
    source: &str,
    configs: &[String],
    patches: &[String],
    compiler: &str,
    arguments: &str,
) -> Vec<String> {
    let mut text = Vec::new();
    let mut line = |name: &str, value: &str| text.push(format!("{name} {value}\n"));
    line("recipe", &RECIPE.to_string());
    line("source", source);
    for config in configs {
        line("config", &hash::bytes(config.as_bytes()));
    }
    for patch in patches {
        line("patch", &hash::bytes(patch.as_bytes()));
    }
    line("compiler", compiler);
    line("make", arguments);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_changes_the_key() {
        let key = |source, configs: &[&str], patches: &[&str], compiler, arguments| {
            let own = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
            lines(source, &own(configs), &own(patches), compiler, arguments).concat()
        };
        let mut keys = vec![
            key("s", &["a"], &[], "gcc 1", "vmlinux"),
            key("t", &["a"], &[], "gcc 1", "vmlinux"),
            key("s", &["b"], &[], "gcc 1", "vmlinux"),
            key("s", &["a", "b"], &[], "gcc 1", "vmlinux"),
            key("s", &["b", "a"], &[], "gcc 1", "vmlinux"),
            key("s", &["a"], &["b"], "gcc 1", "vmlinux"),
            key("s", &["a"], &["c"], "gcc 1", "vmlinux"),
            key("s", &["a"], &[], "gcc 2", "vmlinux"),
            key("s", &["a"], &[], "gcc 1", "bzImage"),
        ];
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 9, "{keys:?}");
    }
}
