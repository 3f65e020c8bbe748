//! A long list of a payload, entry by entry: as one value, tens of megabytes would become a gigabyte.

use super::{BREAK, LIST, Reader, WireError};
use serde_json::Value;

/// Gives each entry of a list member to `each`.
pub(in super::super) fn entries(
    bytes: &[u8],
    wanted: &str,
    each: &mut dyn FnMut(Value),
) -> Result<(), WireError> {
    Reader { bytes, at: 0 }.enveloped_members(|key, reader| {
        if key != wanted {
            return reader.skip().map(drop);
        }
        reader.envelope()?;
        if reader.byte()? != LIST {
            return Err(WireError::Malformed("the member is not a list"));
        }
        while reader.peek()? != BREAK {
            each(reader.value(1)?);
        }
        reader.at += 1;
        Ok(())
    })
}
