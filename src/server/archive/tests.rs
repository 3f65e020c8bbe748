use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

/// A tar whose names are written as they are: the tar library would refuse the evil ones.
fn tar_gz(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn listed(puts: &[Put]) -> Vec<(&str, &[u8])> {
    puts.iter()
        .map(|put| (put.path.as_str(), put.bytes.as_ref()))
        .collect()
}

const SITE: [(&str, &[u8]); 2] = [("./index.html", b"<p>"), ("js/a.js", b"1")];

fn site() -> [(ArchiveFormat, Vec<u8>); 2] {
    let tar = [
        ("./", EntryType::Directory, &b""[..]),
        ("js/", EntryType::Directory, b""),
        (SITE[0].0, EntryType::Regular, SITE[0].1),
        (SITE[1].0, EntryType::Regular, SITE[1].1),
    ];
    [
        (ArchiveFormat::TarGz, tar_gz(&tar)),
        (ArchiveFormat::Zip, zipped(&SITE)),
    ]
}

#[test]
fn both_formats_give_their_files_below_the_prefix() {
    for (format, bytes) in site() {
        let puts = unpack(&bytes, format, "").unwrap();
        assert_eq!(
            listed(&puts),
            [("index.html", &b"<p>"[..]), ("js/a.js", b"1")]
        );
        let puts = unpack(&bytes, format, "./site/").unwrap();
        assert_eq!(puts[1].path.as_str(), "site/js/a.js");
        let refused = unpack(&bytes, format, "../site").unwrap_err();
        assert_eq!((refused.status, refused.code), (400, "bad_path"));
    }
}

#[test]
fn a_path_that_escapes_is_refused_by_its_name() {
    for name in ["../x", "/etc/passwd", "a/../../x", "a\\b", "a//b", "c:\\x"] {
        let tar = tar_gz(&[(name, EntryType::Regular, b"1")]);
        let zip = zipped(&[(name, b"1")]);
        for (format, bytes) in [(ArchiveFormat::TarGz, tar), (ArchiveFormat::Zip, zip)] {
            for prefix in ["", "in"] {
                let refused = unpack(&bytes, format, prefix).unwrap_err();
                assert_eq!(
                    (refused.status, refused.code),
                    (400, "bad_archive"),
                    "{name}"
                );
                assert!(
                    refused.message.contains(&format!("{name:?}")),
                    "{}",
                    refused.message
                );
            }
        }
    }
    let folder = tar_gz(&[("../out/", EntryType::Directory, b"")]);
    assert!(unpack(&folder, ArchiveFormat::TarGz, "").is_err());
}

#[test]
fn links_and_devices_are_refused_by_their_name() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::new(b'Z'),
    ] {
        let refused =
            unpack(&tar_gz(&[("evil", kind, b"")]), ArchiveFormat::TarGz, "").unwrap_err();
        assert_eq!(refused.code, "bad_archive");
        assert!(
            refused.message.contains("\"evil\" is"),
            "{}",
            refused.message
        );
    }
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    writer.add_symlink("evil", "/etc/passwd", options).unwrap();
    let zip = writer.finish().unwrap().into_inner();
    let refused = unpack(&zip, ArchiveFormat::Zip, "").unwrap_err();
    assert!(
        refused.message.contains("\"evil\" is a link"),
        "{}",
        refused.message
    );
}

#[test]
fn a_sparse_file_that_claims_an_exabyte_is_refused_before_it_is_read() {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..4].copy_from_slice(b"evil");
    gnu.realsize = *b"\x80\0\0\0\x10\0\0\0\0\0\0\0";
    gnu.sparse[0].offset = *b"\x80\0\0\0\x10\0\0\0\0\0\0\0";
    gnu.sparse[0].numbytes = *b"00000000000\0";
    header.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header, &b""[..]).unwrap();
    let bytes = gzip(&builder.into_inner().unwrap());
    let refused = unpack(&bytes, ArchiveFormat::TarGz, "").unwrap_err();
    assert_eq!(refused.code, "bad_archive", "{}", refused.message);
}

#[test]
fn a_bomb_is_stopped_at_the_limit_and_its_twin_passes() {
    let bounds = Bounds {
        entries: 3,
        bytes: 1_000,
    };
    let zeros = vec![0_u8; 1_001];
    let bomb: [&[(&str, &[u8])]; 2] = [
        &[("a", &zeros)],
        &[("a", &zeros[..600]), ("b", &zeros[..401])],
    ];
    let twin: &[(&str, &[u8])] = &[("a", &zeros[..600]), ("b", &zeros[..400])];
    let tarred = |files: &[(&str, &[u8])]| {
        let files: Vec<_> = files
            .iter()
            .map(|(name, content)| (*name, EntryType::Regular, *content))
            .collect();
        tar_gz(&files)
    };
    let unpacked = |files: &[(&str, &[u8])]| {
        [
            unpack_within(&tarred(files), ArchiveFormat::TarGz, String::new(), bounds),
            unpack_within(&zipped(files), ArchiveFormat::Zip, String::new(), bounds),
        ]
    };
    for outcome in bomb.into_iter().flat_map(unpacked) {
        assert_eq!(outcome.unwrap_err(), ArchiveRefusal::TooLarge(1_000));
    }
    for outcome in unpacked(twin) {
        assert_eq!(listed(&outcome.unwrap()), twin);
    }
    for outcome in unpacked(&[("a", b""), ("b", b""), ("c", b""), ("d", b"")]) {
        assert_eq!(outcome.unwrap_err(), ArchiveRefusal::TooMany(3));
    }
}

#[test]
fn a_megabyte_that_inflates_to_a_gigabyte_is_refused() {
    let mut gz = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(1 << 30);
    header.set_cksum();
    gz.write_all(header.as_bytes()).unwrap();
    io::copy(&mut io::repeat(0).take(UPLOAD_BYTES as u64 * 2), &mut gz).unwrap();
    let refused = unpack(&gz.finish().unwrap(), ArchiveFormat::TarGz, "").unwrap_err();
    assert_eq!((refused.status, refused.code), (413, "uploads_full"));
}

#[test]
fn an_archive_that_is_cut_short_is_refused() {
    for (format, bytes) in site() {
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            let refused = unpack(&bytes[..length], format, "").unwrap_err();
            assert_eq!(refused.code, "bad_archive", "{format:?} at {length}");
        }
    }
}

/// What `git archive` and GNU tar with long names write.
#[test]
fn a_global_header_and_a_long_name_are_taken() {
    let long = format!("{}/x.js", "d".repeat(150));
    let mut builder = tar::Builder::new(Vec::new());
    let mut global = Header::new_ustar();
    global.set_path("pax_global_header").unwrap();
    global.set_entry_type(EntryType::XGlobalHeader);
    global.set_size(0);
    global.set_cksum();
    builder.append(&global, &b""[..]).unwrap();
    let mut header = Header::new_gnu();
    header.set_size(1);
    builder.append_data(&mut header, &long, &b"1"[..]).unwrap();
    let bytes = gzip(&builder.into_inner().unwrap());
    let puts = unpack(&bytes, ArchiveFormat::TarGz, "").unwrap();
    assert_eq!(listed(&puts), [(long.as_str(), &b"1"[..])]);
}

proptest! {
    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz(&bytes);
        fuzz(&gzip(&bytes));
    }

    #[test]
    fn a_mutated_archive_never_panics_nor_escapes(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        for (format, bytes) in site() {
            // A tar is mutated below its gzip, where a changed byte still reaches the parser.
            let mut inner = Vec::new();
            if format == ArchiveFormat::TarGz {
                MultiGzDecoder::new(&bytes[..]).read_to_end(&mut inner).unwrap();
            } else {
                inner.extend_from_slice(&bytes);
            }
            for (index, byte) in &edits {
                let at = index.index(inner.len());
                inner[at] = *byte;
            }
            let cut = &inner[..cut.index(inner.len())];
            for bytes in [&inner, cut] {
                fuzz(bytes);
                fuzz(&gzip(bytes));
            }
        }
    }
}
