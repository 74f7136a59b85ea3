//! The names of files that are written into a folder.
use super::Content;
use profkit_data::ids::{BuildId, NameRef};

/// The file name for a program's profile: its build id. A profile of several programs (an executable and its libraries)
/// is named by the first id, the number of further ids, and a hash of all ids.
pub fn program_name(ids: &[BuildId], content: Content) -> String {
    let extension = match content {
        Content::Binary => "profdata",
        Content::Text => "proftext",
    };
    match ids {
        [] => format!("no-build-id.{extension}"),
        [id] => format!("{id}.{extension}"),
        [first, rest @ ..] => {
            let all: Vec<_> = ids.iter().map(ToString::to_string).collect();
            let NameRef(hash) = NameRef::of(all.join(" ").as_bytes());
            format!("{first}+{}-{hash:016x}.{extension}", rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_differ_if_any_id_does() {
        let name = |ids: &[u8]| {
            let ids: Vec<_> = ids.iter().map(|&id| BuildId(vec![id, 0xb0])).collect();
            program_name(&ids, Content::Binary)
        };
        assert_eq!(name(&[]), "no-build-id.profdata");
        assert_eq!(name(&[1]), "01b0.profdata");
        assert_eq!(name(&[1, 2]), "01b0+1-05f762d1a48dcb66.profdata");
        assert_ne!(name(&[1, 2]), name(&[1, 3]));
        assert_eq!(program_name(&[], Content::Text), "no-build-id.proftext");
    }
}
