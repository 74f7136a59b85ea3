//! Fuzzes the HTML page of a profile.
use profkit_analysis::heap::HeapProfile;
use profkit_analysis::instr::{InstrReader, InstrTable};
use profkit_analysis::names::Spelling;
use profkit_analysis::samples::SampleView;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::memprof::Thresholds;
use profkit_data::mip::{MipProfile, ProfileVersion};
use profkit_page::{DEFAULT_SIZE_LIMIT, Page};
use profkit_report::heap::HeapView;

/// Makes the page of any profile. Names in the profile must not become HTML elements: the page has only the elements of
/// the template, its own scripts, and a script per data block. The same profile must give the same page.
pub(crate) fn page(data: &[u8]) {
    for limit in [DEFAULT_SIZE_LIMIT, 1000] {
        let Some(text) = html(data, limit) else {
            return;
        };
        let count = |part: &str| text.matches(part).count();
        assert_eq!(count("<script"), count("</script>"));
        assert_eq!(count("<script"), count(" id=\"b-") + 1);
        assert_eq!(count("<script>"), 1);
        let before = text.split("<script>").next().unwrap_or_default();
        for element in ["<img", "<iframe", "<object", "<link", "<base", "<form"] {
            assert!(!before.contains(element), "{element}");
        }
        // The page's own links lead to functions on it.
        let links = |part: &str| before.matches(part).count();
        assert_eq!(links("<a "), links("<a href=\"#function/"));
        assert_eq!(html(data, limit).as_ref(), Some(&text));
    }
}

fn html(data: &[u8], limit: usize) -> Option<String> {
    let size = data.len() as u64;
    let kind = detect(data);
    let mut page = match kind {
        FileKind::MipProfile => {
            let profile = MipProfile::parse(data).ok()?;
            Page::of_mip("<fuzz>", size, ProfileVersion::V9, &profile)
        }
        kind if kind.family() == Some(Family::Sample) => {
            Page::of_samples("<fuzz>", size, &SampleView::open(data, None).ok()?)
        }
        _ => {
            let table = InstrTable::read(InstrReader::open(data).ok()?);
            Page::of_instr("<fuzz>", size, &table).0
        }
    };
    if kind == FileKind::InstrIndexed
        && let Ok(heap) = HeapProfile::from_indexed(data)
    {
        let view = HeapView {
            path: "<fuzz>",
            size,
            heap: &heap,
            notes: &[],
            spelling: Spelling::Demangled,
            whole_stacks: false,
        };
        page.add_heap(&view, &Thresholds::default());
    }
    Some(page.html(limit).text)
}
