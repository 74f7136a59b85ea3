//! What raw dumps tell without the programs that ran.
use super::figures::ContextSum;
use crate::faults::Faults;
use crate::instr::SectionPlace;
use profkit_data::Result;
use profkit_data::ids::BuildId;
use profkit_data::index_vec::IndexVec;
use profkit_data::memprof::raw::RawMemProf;
use profkit_data::memprof::{Hotness, Thresholds};
use profkit_merge::memprof::{Module, RawContexts};
use std::collections::BTreeSet;

/// A dump of a raw file: its header and sections.
#[derive(Clone, Debug)]
pub struct DumpLayout {
    /// The offset of the dump in the file.
    pub offset: u64,
    /// The size of the dump in bytes.
    pub size: u64,
    /// The raw version of the dump.
    pub version: u32,
    /// The words of the header: the name, the absolute offset and the value of each.
    pub header: Vec<(&'static str, u64, u64)>,
    /// The sections.
    pub sections: Vec<SectionPlace>,
}

/// A module with addresses in call stacks.
#[derive(Clone, Debug)]
pub struct DumpModule {
    /// The module.
    pub module: Module,
    /// The number of addresses in the module.
    pub addresses: u64,
}

/// Raw dumps without functions: totals, modules and layout.
///
/// ```no_run
/// use profkit_analysis::heap::HeapDumps;
/// use profkit_data::memprof::Thresholds;
///
/// let file = std::fs::read("heap.memprofraw")?;
/// let dumps = HeapDumps::parse(&file, &Thresholds::default())?;
/// println!("{} contexts, {} bytes", dumps.total.contexts, dumps.total.bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeapDumps {
    /// The dumps in the order of the file.
    pub dumps: Vec<DumpLayout>,
    /// All contexts, also those of the run-time library, which a profile with functions leaves out.
    pub total: ContextSum,
    /// The cold contexts.
    pub cold: ContextSum,
    /// The contexts that are neither cold nor hot.
    pub warm: ContextSum,
    /// The hot contexts.
    pub hot: ContextSum,
    /// The number of contexts with an access histogram.
    pub histograms: u64,
    /// The modules with addresses in call stacks, those with the most addresses first.
    pub modules: Vec<DumpModule>,
    /// The build ids of all modules that were mapped, each once.
    pub build_ids: Vec<BuildId>,
    /// The faults of the file.
    pub damage: Faults,
}

impl HeapDumps {
    /// Reads the dumps of a raw file as far as they are sound.
    ///
    /// # Errors
    /// If the first header cannot be read.
    pub fn parse(data: &[u8], thresholds: &Thresholds) -> Result<Self> {
        let profile = RawMemProf::parse(data)?;
        let mut damage = Faults::default();
        let mut contexts = RawContexts::default();
        contexts.add(&profile, |skipped| damage.push(skipped.error));
        let layout = |(structure, offset, size)| SectionPlace {
            structure,
            offset,
            size,
            missing: 0,
        };
        let mut build_ids = BTreeSet::new();
        let mut dumps = Vec::with_capacity(profile.dumps().len());
        for dump in profile.dumps() {
            dumps.push(DumpLayout {
                offset: dump.offset(),
                size: dump.size(),
                version: dump.version().number(),
                header: dump.header_fields(),
                sections: dump.section_places().into_iter().map(layout).collect(),
            });
            // A fault of the segments was already reported with the contexts.
            let segments = dump.segments().unwrap_or_default();
            build_ids.extend(segments.into_iter().map(|segment| segment.build_id));
        }
        let mut addresses = IndexVec::parallel_to(contexts.modules(), 0u64);
        for &(module, _) in contexts.addresses() {
            addresses[module] += 1;
        }
        let counted = contexts.modules().iter().zip(addresses);
        let mut modules: Vec<DumpModule> = counted
            .filter(|(_, addresses)| *addresses > 0)
            .map(|(module, addresses)| DumpModule {
                module: module.clone(),
                addresses,
            })
            .collect();
        modules.sort_by_key(|module| std::cmp::Reverse(module.addresses));
        let mut found = HeapDumps {
            dumps,
            total: ContextSum::default(),
            cold: ContextSum::default(),
            warm: ContextSum::default(),
            hot: ContextSum::default(),
            histograms: 0,
            modules,
            build_ids: build_ids
                .into_iter()
                .filter(|id| !id.0.is_empty())
                .collect(),
            damage,
        };
        for context in contexts.contexts() {
            let one = ContextSum::of_block(context.block);
            found.total.add(one);
            match thresholds.hotness(context.block, true) {
                Hotness::Cold => found.cold.add(one),
                Hotness::Warm => found.warm.add(one),
                Hotness::Hot => found.hot.add(one),
            }
            found.histograms += u64::from(!context.histogram.is_empty());
        }
        Ok(found)
    }

    /// The newest raw version of the dumps.
    pub fn version(&self) -> u32 {
        let versions = self.dumps.iter().map(|dump| dump.version);
        versions.max().unwrap_or(0)
    }
}
