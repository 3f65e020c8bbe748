use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn what_is_written_reads_back() {
    let value = json!({"a": [1, -1, 23, 24, 255, 256, 65536, -70000, 1.5, 3_000_000_000_u64], "b": {"c": null, "d": true},
        "text": "x".repeat(70_000), "é": "ü\u{1F600}"});
    assert_eq!(decode(&encode(&value)).unwrap(), value);
}

#[test]
fn the_entries_of_a_list_come_one_by_one() {
    let encoded = encode(&json!({"a": {"nodes": [9]}, "nodes": [1, {"b": [2]}, "x"], "c": [3]}));
    let mut found = Vec::new();
    entries(&encoded, "nodes", &mut |entry| found.push(entry)).unwrap();
    assert_eq!(found, [json!(1), json!({"b": [2]}), json!("x")]);
    let no_list = encode(&json!({"nodes": {}}));
    assert!(entries(&no_list, "nodes", &mut |_| {}).is_err());
    assert!(entries(&encoded[..encoded.len() - 9], "nodes", &mut |_| {}).is_err());
}

#[test]
fn a_lone_surrogate_becomes_the_replacement_character() {
    assert_eq!(
        decode(&[0x44, 0x3d, 0xd8, b'a', 0]).unwrap(),
        json!("\u{fffd}a")
    );
}

#[test]
fn a_picture_is_a_slice_of_the_message_it_came_in() {
    let mut body = vec![MAP, 0x62, b'i', b'd', 7, 0x66];
    body.extend_from_slice(b"result");
    let inner = [
        &[MAP, 0x64][..],
        b"data",
        &[TAG_BINARY, 0x43, 1, 2, 3],
        &[0x61, b'n', 5, BREAK],
    ]
    .concat();
    body.extend_from_slice(&[
        0xd8,
        0x18,
        0x5a,
        0,
        0,
        0,
        u8::try_from(inner.len()).unwrap(),
    ]);
    body.extend_from_slice(&inner);
    body.push(BREAK);
    let body = Bytes::from(body);
    let Ok(Message::Reply {
        id: 7,
        result: Ok(payload),
    }) = message(&body)
    else {
        panic!("no reply")
    };
    let picture = payload.binary("data").unwrap();
    assert_eq!(&picture[..], [1, 2, 3]);
    assert!(body.as_ptr_range().contains(&picture.as_ptr()));
    assert_eq!(payload.value_without("data").unwrap(), json!({"n": 5}));
    assert_eq!(payload.value().unwrap(), json!({"data": "AQID", "n": 5}));
}

#[test]
fn nesting_has_a_floor() {
    let deep = (0..600).fold(json!(1), |inner, _| json!([inner]));
    assert!(decode(&encode(&deep)).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = message(&Bytes::from(bytes));
    }

    #[test]
    fn a_changed_message_is_taken_without_a_panic(at in 0_usize..60, byte in any::<u8>()) {
        let mut bytes = encode(&json!({"id": 1, "result": {"a": [1, "two", {"three": 3.5}], "b": "x"}}));
        if let Some(place) = bytes.get_mut(at) { *place = byte; }
        let _ = decode(&bytes);
        let _ = message(&Bytes::from(bytes[ENVELOPE..].to_vec()));
    }
}
