//! Where the code of a profile ran: on the host, or on a GPU.
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Where the code of a profile ran: on the host, or on a device such as a GPU.
///
/// A program with code for GPUs writes one raw profile of the host, and one of each device. Nothing in such a file names
/// the device, but its name does: that of the host's file with the device and a dot before it (docs/formats/raw.md). The
/// profile of a device has the build id of the host's program, and can have functions of the same names and hashes.
///
/// ```
/// use profkit_data::instr::Target;
///
/// assert_eq!(Target::of_file("runs/default.profraw"), Target::Host);
/// let target = Target::of_file("runs/amdgcn-amd-amdhsa.default.profraw");
/// assert_eq!(target, Target::Device("amdgcn-amd-amdhsa".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The processor that runs the program itself.
    Host,
    /// A device: a target triple, or a processor such as `gfx90a:sramecc+:xnack-`.
    Device(String),
}

/// What the triples of devices begin with.
const TRIPLES: [&str; 7] = [
    "amdgcn-", "amdgpu-", "nvptx-", "nvptx64-", "spirv-", "spirv32-", "spirv64-",
];

/// What LLVM's runtime calls a device if it does not know more of it. Programs can have these names too.
const UNKNOWN_DEVICES: [&str; 2] = ["amdgcn", "amdgpu"];

impl Target {
    /// The target that the name of a profile states. A path, or an archive and `!`, may stand before the name. [`Target::Host`] if it states none.
    pub fn of_file(path: &str) -> Self {
        let name = path.rsplit(['/', '\\', '!']).next().unwrap_or(path);
        match device(name) {
            Some(device) => Target::Device(device.to_owned()),
            None => Target::Host,
        }
    }

    /// The targets that the names of profiles state, each with the number of its profiles.
    pub fn count<'n>(paths: impl IntoIterator<Item = &'n str>) -> BTreeMap<Self, u64> {
        let mut targets = BTreeMap::new();
        for path in paths {
            *targets.entry(Self::of_file(path)).or_default() += 1;
        }
        targets
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Host => f.write_str("host"),
            Target::Device(name) => f.write_str(name),
        }
    }
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "host" => Target::Host,
            name => Target::Device(name.to_owned()),
        })
    }
}

fn device(name: &str) -> Option<&str> {
    let (first, rest) = name.split_once('.')?;
    let is_triple = TRIPLES.iter().any(|begin| {
        let rest = first.strip_prefix(begin);
        rest.is_some_and(|rest| !rest.is_empty())
    });
    let is_device = is_triple
        || is_amd_processor(first)
        || UNKNOWN_DEVICES.contains(&first) && rest.contains('.');
    (is_device && !rest.is_empty()).then_some(first)
}

/// Whether this is a name that ROCm gives to a GPU: `gfx90a`, `gfx9-4-generic`, `gfx90a:sramecc+:xnack-`.
fn is_amd_processor(name: &str) -> bool {
    let mut parts = name.split(':');
    let Some(processor) = parts.next().and_then(|part| part.strip_prefix("gfx")) else {
        return false;
    };
    let is_known = match processor.strip_suffix("-generic") {
        Some(family) => family
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())),
        None => processor.len() >= 3 && processor.bytes().all(|byte| byte.is_ascii_hexdigit()),
    };
    let is_feature = |part: &str| {
        let name = part.strip_suffix(['+', '-']);
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    is_known && parts.all(is_feature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_recognised_by_the_names_of_their_files() {
        for (file, target) in [
            ("default.profraw", "host"),
            ("amdgcn-amd-amdhsa.default.profraw", "amdgcn-amd-amdhsa"),
            ("a/nvptx64-nvidia-cuda.1.profraw.gz", "nvptx64-nvidia-cuda"),
            ("runs.tar!spirv64-intel-unknown.x", "spirv64-intel-unknown"),
            ("gfx1100.profdata", "gfx1100"),
            // A program of several files has a number, and what HSA found has one of its own.
            ("gfx90a.0.default.profraw", "gfx90a"),
            ("gfx90a.hsa12.default.profraw", "gfx90a"),
            (
                "gfx90a:sramecc+:xnack-.default.profraw",
                "gfx90a:sramecc+:xnack-",
            ),
            ("gfx9-4-generic.default.profraw", "gfx9-4-generic"),
            ("amdgpu.default.profraw", "amdgpu"),
            // These are programs.
            ("amdgpu.profraw", "host"),
            ("amdgcn-.profraw", "host"),
            ("gfx.default.profraw", "host"),
            ("gfxbench.default.profraw", "host"),
            ("gfx90a:.default.profraw", "host"),
            ("gfx90a.", "host"),
            ("x86_64-unknown-linux-gnu.default.profraw", "host"),
            ("gfx90a/default.profraw", "host"),
        ] {
            let found = Target::of_file(file);
            assert_eq!(found.to_string(), target, "{file}");
            assert_eq!(target.parse(), Ok(found));
        }
    }
}
