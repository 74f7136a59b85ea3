use super::*;
use proptest::prelude::*;

fn text(profile: &MipProfile, version: ProfileVersion) -> String {
    let mut out = Vec::new();
    yaml::write(profile, &MipWriteOptions::new().version(version), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn version_8_has_the_keys_of_the_original() {
    let mut profile = created(V8_MAP, &ImageFacts::new()).unwrap().profile;
    profile.functions[function(0)].called_runs = 1;
    profile.width = None;
    profile.runs = 1;
    for function in &mut profile.functions {
        function.raw_runs = 1;
    }
    let yaml = text(&profile, ProfileVersion::V8);
    insta::assert_snapshot!(yaml, @r"
---
Header:
  File Type:       [ .mip ]
  Profile Type:    [ Function Coverage ]
  Module Hash:     0xDEADBEEF
Profiles:
  - Function Name:   foo
    Function Signature: 0x5CF8C24CDB18BDAC
    Raw Profile Data Address: 0x20
    Encoded Function Address: 0x100
    Function Size:   0x10
    Control Flow Graph Signature: 0xE7715
    Raw Profile Count: 1
    Function Call Count: 1
    Function Order Sum: 0
    Basic Block Profiles:
      - Offset:          0x0
        Covered:         true
      - Offset:          0x4
        Covered:         false
    Call Edges:      []
  - Function Name:   main
    Function Signature: 0xDB956436E78DD5FA
    Raw Profile Data Address: 0x21
    Encoded Function Address: 0x110
    Function Size:   0x30
    Control Flow Graph Signature: 0x1111
    Raw Profile Count: 0
    Function Call Count: 0
    Function Order Sum: 0
    Basic Block Profiles:
      - Offset:          0x0
        Covered:         false
    Call Edges:      []
...
");
    assert_eq!(
        yaml::parse(yaml.as_bytes()).unwrap(),
        (profile, ProfileVersion::V8)
    );
}

#[test]
fn version_9_holds_everything() {
    let profile = full();
    let yaml = text(&profile, ProfileVersion::V9);
    insta::assert_snapshot!(yaml.lines().take(59).collect::<Vec<_>>().join("\n"), @"
    ---
    Header:
      Version:         9
      File Type:       [ .mip, 64 bit ]
      Profile Type:    [ Function Coverage, Block Coverage, Function Timestamp, Function Call Count, Return Address, Unary Counter ]
      Build Id:        'abababababababababababababababababababab'
      Raw Section Address: 0x404000
      Raw Section Size: 0x19
      Run Count:       7
    Profiles:
      - Function Name:   main
        Function Signature: 0xDB956436E78DD5FA
        Profile Type:    [ Block Coverage, Function Timestamp, Function Call Count, Return Address ]
        Raw Profile Data Address: 0x0
        Function Address: 0x401000
        Function Size:   0x40
        Control Flow Graph Signature: 0x1003
        Run Count:       7
        Raw Profile Count: 4
        Function Call Count: 1000
        Function Order Sum: 10
        Function Order Count: 4
        Function Order Minimum: 2
        Basic Block Profiles:
          - Offset:          0x0
            Covered:         true
            Raw Profile Count: 4
          - Offset:          0x8
            Covered:         false
            Raw Profile Count: 0
          - Offset:          0x10
            Covered:         true
            Raw Profile Count: 1
          - Offset:          0x18
            Covered:         true
            Raw Profile Count: 2
        Call Edges:
          - Section Relative Source Address: 0xFFFF0000
            Weight:          3
        Source Info:
          - Function Name:   main
            File Name:       /src/main.c
            Line:            10
            Column:          3
      - Function Name:   _ZN3one3twoEi
        Function Signature: 0x89191B5E8014A71B
        Profile Type:    [ Function Timestamp, Function Call Count, Return Address ]
        Raw Profile Data Address: 0xC
        Function Address: 0x401040
        Function Size:   0x40
        Control Flow Graph Signature: 0x1000
        Run Count:       7
        Raw Profile Count: 3
        Function Call Count: 2000
        Function Call Count Is Lower Bound: true
        Function Order Sum: 20
        Function Order Count: 3
        Function Order Minimum: 2
        Basic Block Profiles:
    ");
    assert_eq!(
        yaml::parse(yaml.as_bytes()).unwrap(),
        (profile, ProfileVersion::V9)
    );
    let empty = MipProfile::default();
    let yaml = text(&empty, ProfileVersion::V9);
    assert_eq!(yaml::parse(yaml.as_bytes()).unwrap().0, empty);
}

const HEADER: &str =
    "Header: { File Type: [ .mip ], Profile Type: [ Function Coverage ], Module Hash: 1 }\n";

#[test]
fn what_is_no_profile() {
    let refused = |text: &str| message(&yaml::parse(text.as_bytes()).unwrap_err());
    let function =
        |text: &str| refused(&format!("{HEADER}Profiles:\n  - Function Name: f\n{text}"));
    let header = |text: &str| refused(&format!("Header:\n{text}"));
    insta::assert_snapshot!(refused(""), @"MIP YAML at line 1, column 1: the text has no document: expected a document that is not empty");
    insta::assert_snapshot!(refused("- 1"), @"MIP YAML at line 1, column 1: the document is not a mapping: found a list, expected KEY: VALUE lines");
    insta::assert_snapshot!(refused("Header: [\n"), @"MIP YAML at line 1, column 9: Header is not a mapping: found a list, expected KEY: VALUE lines");
    insta::assert_snapshot!(refused("Profiles: []"), @"MIP YAML at line 1, column 1: there is no header before the profiles");
    insta::assert_snapshot!(refused(HEADER), @"MIP YAML at line 1, column 1: a key is missing: expected Profiles");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles: []\n---\n{HEADER}")), @"MIP YAML at line 3, column 1: a second document begins: expected one profile");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles: 7\n")), @"MIP YAML at line 2, column 11: Profiles is not a list: found a single value, expected a list");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles: []\nHeader: {{}}\n")), @"MIP YAML at line 3, column 1: a key of the document occurs twice: found Header");
    insta::assert_snapshot!(header("  Version: 10\n"), @"MIP YAML at line 2, column 12: the version is not supported: found `10`, expected 8 or 9");
    insta::assert_snapshot!(header("  Versions: 9\n"), @"MIP YAML at line 2, column 3: Header has an unknown key: found Versions");
    insta::assert_snapshot!(header("  File Type: [ .mipraw ]\n"), @"MIP YAML at line 2, column 16: File Type has an unknown value: found `.mipraw`, expected .mip, 64 bit or 32 bit");
    insta::assert_snapshot!(header("  File Type: [ 64 bit ]\n"), @"MIP YAML at line 1, column 1: File Type is not the type of a profile: expected .mip");
    insta::assert_snapshot!(header("  File Type: [ .mip ]\n"), @"MIP YAML at line 2, column 3: a key of Header is missing: expected Module Hash or Build Id");
    insta::assert_snapshot!(header("  Profile Type: [ Function ]\n"), @"MIP YAML at line 2, column 19: Profile Type has an unknown value: found `Function`, expected Function Coverage, Block Coverage, Function Timestamp, Function Call Count, Return Address, Unary Counter, Function Part or Inferred Blocks");
    insta::assert_snapshot!(header("  Module Hash: 0x100000000\n"), @"MIP YAML at line 2, column 16: Module Hash is not a valid number: found `0x100000000`, expected 0 to 4294967295, decimal or hexadecimal with the prefix 0x");
    insta::assert_snapshot!(header("  Module Hash: -1\n"), @"MIP YAML at line 2, column 16: Module Hash is not a valid number: found `-1`, expected 0 to 4294967295, decimal or hexadecimal with the prefix 0x");
    insta::assert_snapshot!(header("  Version: 9\n  Build Id: abc\n"), @"MIP YAML at line 3, column 13: Build Id is not hexadecimal: found `abc`, expected pairs of hexadecimal digits");
    insta::assert_snapshot!(header("  Version: 9\n  Build Id: *anchor\n"), @"MIP YAML at line 3, column 13: the text is not YAML: while parsing node, found unknown anchor");
    insta::assert_snapshot!(function("    Function Name: g\n"), @"MIP YAML at line 4, column 5: a key of a function occurs twice: found Function Name");
    insta::assert_snapshot!(function("    Function Signature: 7\n"), @"MIP YAML at line 4, column 5: Function Signature is not the hash of the name: found 0x0000000000000007, expected 0xcc914f75dd4ca18f");
    insta::assert_snapshot!(function("    Function Size: big\n"), @"MIP YAML at line 4, column 20: Function Size is not a valid number: found `big`, expected 0 to 4294967295, decimal or hexadecimal with the prefix 0x");
    insta::assert_snapshot!(function("    Run Count: 7\n"), @"MIP YAML at line 4, column 5: a function has an unknown key: found Run Count");
    insta::assert_snapshot!(function("    Basic Block Profiles:\n      - Offset: 8\n"), @"MIP YAML at line 4, column 5: the first block is not the entry block: found offset 0x8, expected 0x0");
    insta::assert_snapshot!(function("    Basic Block Profiles:\n      - Covered: 1\n"), @"MIP YAML at line 5, column 18: Covered is neither true nor false: found `1`, expected true or false");
    insta::assert_snapshot!(function("    Call Edges:\n      - Weight: 1\n"), @"MIP YAML at line 5, column 9: a call edge must state its caller in exactly one way: expected either Caller Index and Call Site, or Section Relative Source Address");
    insta::assert_snapshot!(function("    Call Edges:\n      - { Caller Index: 3, Caller Name: g, Weight: 1 }\n"), @"MIP YAML at line 5, column 9: the caller of a call edge is not in the profile: found index 3, `g`, expected index and name of a function of the profile, counted from 0");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles:\n  - Function Size: 7\n")), @"MIP YAML at line 3, column 5: a key of a function is missing: expected Function Name");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles:\n  - Function Name: !b 7\n")), @"MIP YAML at line 3, column 20: a value has an unknown tag: found !b, expected no tag, or the tag !bytes");
    insta::assert_snapshot!(refused(&format!("{HEADER}Profiles:\n  - Function Name: !bytes \"\\u0100\"\n")), @r"!bytes of MIP YAML at line 3, column 20: a character is too large for a byte: expected characters up to \xFF");
    insta::assert_snapshot!(message(&yaml::parse(b"a: \xff").unwrap_err()), @"MIP YAML at line 1, column 4: the text is not UTF-8");
}

proptest! {
    #[test]
    fn names_come_back(names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..5)) {
        let mut profile = mixed();
        for (function, name) in profile.functions.iter_mut().zip(names) {
            function.name = name;
        }
        let yaml = text(&profile, ProfileVersion::V9);
        prop_assert_eq!(yaml::parse(yaml.as_bytes()).unwrap().0, profile);
    }

    #[test]
    fn texts_come_back(name in "\\PC{0,12}") {
        let mut profile = mixed();
        profile.functions[function(0)].name = name.into_bytes();
        let yaml = text(&profile, ProfileVersion::V9);
        prop_assert_eq!(yaml::parse(yaml.as_bytes()).unwrap().0, profile);
    }
}
