//! Sizes of memory as people write them: `2GiB`, `512MiB`.

use super::limits::MEMORY_LEAST;

/// Why a text is no bound of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is not a number with a unit.
    #[error("write a whole number with MiB or GiB, as in 512MiB or 2GiB")]
    Form,
    /// Chromium cannot live with it.
    #[error("a browser needs at least {} MiB", MEMORY_LEAST / MIB)]
    TooSmall,
}

/// Bytes in a mebibyte.
const MIB: u64 = 1024 * 1024;

/// Bytes of a bound of memory.
///
/// # Errors
/// Where it is none, or below [`MEMORY_LEAST`].
pub fn parse_memory(text: &str) -> Result<u64, SizeError> {
    let unit_at = text
        .find(|character: char| !character.is_ascii_digit())
        .ok_or(SizeError::Form)?;
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit.trim_start().to_ascii_lowercase().as_str() {
        "mib" => MIB,
        "gib" => 1024 * MIB,
        _ => return Err(SizeError::Form),
    };
    let number: u64 = number.parse().map_err(|_| SizeError::Form)?;
    let bytes = number.checked_mul(unit).ok_or(SizeError::Form)?;
    enough_memory(bytes)
}

/// A bound of memory that is given in bytes.
///
/// # Errors
/// Where it is below [`MEMORY_LEAST`].
pub fn enough_memory(bytes: u64) -> Result<u64, SizeError> {
    if bytes < MEMORY_LEAST {
        return Err(SizeError::TooSmall);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_its_unit_and_nothing_else() {
        for (text, bytes) in [
            ("512MiB", Ok(512 * MIB)),
            ("2GiB", Ok(2048 * MIB)),
            ("2 gib", Ok(2048 * MIB)),
            ("511MiB", Err(SizeError::TooSmall)),
            ("0GiB", Err(SizeError::TooSmall)),
            ("2", Err(SizeError::Form)),
            ("2GB", Err(SizeError::Form)),
            ("2G", Err(SizeError::Form)),
            ("1.5GiB", Err(SizeError::Form)),
            ("-1GiB", Err(SizeError::Form)),
            ("GiB", Err(SizeError::Form)),
            ("", Err(SizeError::Form)),
            ("18446744073709551615GiB", Err(SizeError::Form)),
        ] {
            assert_eq!(parse_memory(text), bytes, "{text}");
        }
    }
}
