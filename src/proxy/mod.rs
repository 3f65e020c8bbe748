//! The one way out of the browser: listener, request, gate, resolve, dial, tunnel, and the uploads host.

pub mod uploads;
