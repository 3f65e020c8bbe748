//! The built-in list: public CDNs and font hosts that web graphics load their libraries, decoders and fonts from.
//!
//! Exact names alone. A host is here when it serves published packages, fonts or decoders to anyone and runs nothing for
//! whoever asks. The owner turns the whole list off with `--no-default-hosts`.

/// The names, in alphabetical order.
pub const DEFAULT_HOSTS: &[&str] = &[
    "ajax.googleapis.com",
    "assets.babylonjs.com",
    "cdn.babylonjs.com",
    "cdn.jsdelivr.net",
    "cdn.plot.ly",
    "cdn.skypack.dev",
    "cdn.tailwindcss.com",
    "cdnjs.cloudflare.com",
    "code.jquery.com",
    "code.playcanvas.com",
    "d3js.org",
    "dl.polyhaven.org",
    "esm.run",
    "esm.sh",
    "esm.unpkg.com",
    "fonts.googleapis.com",
    "fonts.gstatic.com",
    "ga.jspm.io",
    "p.typekit.net",
    "rsms.me",
    "threejs.org",
    "unpkg.com",
    "use.fontawesome.com",
    "use.typekit.net",
    "www.gstatic.com",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::host::Host;

    #[test]
    fn the_built_in_list_is_exact_names_in_order() {
        assert!(DEFAULT_HOSTS.is_sorted_by(|a, b| a < b));
        for name in DEFAULT_HOSTS {
            assert_eq!(Host::parse(name).unwrap().as_str(), *name);
        }
    }
}
