//! Recognises assembly for Windows, whose object format (COFF) no back end writes.

/// Whether a text is assembly for COFF. There, compilers describe each symbol by `.def` to `.endef`; no other object
/// format has these directives.
pub(super) fn shows(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b".endef").any(|at| {
        let line = text
            .get(..at)
            .and_then(|before| before.rsplit(|&byte| byte == b'\n').next())
            .unwrap_or_default()
            .trim_ascii();
        line.is_empty() || line.starts_with(b".def")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_of_symbols_show_coff() {
        assert!(shows(
            b"\t.def\tf;\n\t.scl\t2;\n\t.type\t32;\n\t.endef\nf:\n\tretq\n"
        ));
        assert!(shows(b"f:\n\t.def\tf;\t.scl\t2;\t.type\t32;\t.endef\n"));
        assert!(!shows(
            b"\t.type f,@function\nf:\n\tretq\n\t.ascii \" .endef\"\n# .endef\n"
        ));
    }
}
