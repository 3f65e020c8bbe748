//! Paths of requests to paths of uploads.

use super::store::UploadPath;

/// The path of the upload that a request's path stands for; a folder stands for its `index.html`.
pub(super) fn upload_path(path: &str) -> Option<UploadPath> {
    let mut path = percent_decode(path.strip_prefix('/')?)?;
    if path.is_empty() || path.ends_with('/') {
        path.push_str("index.html");
    }
    // `./x` and `x` are one upload, but a URL has one spelling of it.
    if path.starts_with("./") {
        return None;
    }
    UploadPath::parse(&path).ok()
}

/// A path of a URL as text; a broken escape, or bytes that are no UTF-8, are nothing.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            hex(rest.next()?)? << 4 | hex(rest.next()?)?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_its_index() {
        for (path, upload) in [
            ("/", "index.html"),
            ("/a/", "a/index.html"),
            ("/a/b.js", "a/b.js"),
            ("/a%20b/%C3%A4.png", "a b/ä.png"),
            ("/a%2fb", "a/b"),
        ] {
            assert_eq!(upload_path(path).unwrap().as_str(), upload);
        }
    }

    #[test]
    fn a_path_that_escapes_or_is_broken_is_no_upload() {
        for path in [
            "",
            "*",
            "/../x",
            "/%2e%2e/x",
            "/a/%2e%2e/%2e%2e/x",
            "/%",
            "/%4",
            "/%zz",
            "/%ff",
            "/%00",
            "//etc",
            "/a//b",
            "/./a",
        ] {
            assert_eq!(upload_path(path), None, "{path}");
        }
    }
}
