//! Chromium's command line: what every start gets, each switch with its reason, and one list of features on and off
//! (Chromium honours only the last of each).

use std::path::Path;

use super::rung::Rung;
use crate::policy::switches::{Features, OwnerSwitches};

/// What a start depends on.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// The GPU path.
    pub rung: Rung,
    /// The port of the proxy, as the browser sees it.
    pub proxy_port: u16,
    /// The key of the uploads host, base64 of its SHA-256.
    pub uploads_key: &'a str,
    /// The profile folder of the run.
    pub profile: &'a Path,
    /// Binary CDP.
    pub cbor: bool,
    /// Chromium's own sandbox.
    pub sandbox: bool,
    /// What the owner adds: GPU switches.
    pub owner: &'a OwnerSwitches,
}

/// Switches that keep the browser inside the proxy, without the ones that need a value of the run.
const BOUNDARY: &[(&str, &str)] = &[
    (
        "--proxy-bypass-list=<-loopback>",
        "else loopback and link-local go direct",
    ),
    (
        "--host-resolver-rules=MAP * ^NOTFOUND , EXCLUDE 127.0.0.1",
        "no name is ever looked up by the browser",
    ),
    (
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "no UDP; the --force- spelling does nothing",
    ),
    ("--disable-quic", "no UDP"),
    (
        "--gaia-url=http://127.0.0.1:1",
        "no account service; port 1 dies inside Chromium",
    ),
    ("--google-base-url=http://127.0.0.1:1", "the same"),
    (
        "--component-updater=url-source=http://127.0.0.1:1/x",
        "no updates of components",
    ),
    ("--gcm-checkin-url=http://127.0.0.1:1/c", "no push service"),
    ("--gcm-registration-url=http://127.0.0.1:1/r", "the same"),
    ("--gcm-mcs-endpoint=https://127.0.0.1:1", "the same"),
    (
        "--disable-background-networking",
        "fewer requests of the browser's own",
    ),
    ("--disable-component-update", "the same"),
    ("--disable-sync", "the same"),
    ("--disable-default-apps", "the same"),
    ("--disable-extensions", "nothing but pages runs"),
    (
        "--disable-domain-reliability",
        "no reports on failed requests",
    ),
    (
        "--disable-field-trial-config",
        "the same behaviour on every machine",
    ),
    ("--disable-breakpad", "no crash reports"),
    ("--metrics-recording-only", "no metrics leave"),
    ("--no-pings", "no hyperlink auditing"),
];

/// Switches for a browser that nobody looks at and that many pages share.
const UNATTENDED: &[(&str, &str)] = &[
    (
        "--headless=new",
        "the full browser without a window on a screen",
    ),
    ("--no-startup-window", "no page but ours"),
    ("--no-first-run", "no welcome"),
    ("--no-default-browser-check", "no question"),
    ("--password-store=basic", "no keyring of the owner's"),
    ("--use-mock-keychain", "the same on macOS"),
    ("--disable-search-engine-choice-screen", "no question"),
    ("--disable-infobars", "no bars in the picture"),
    ("--hide-scrollbars", "pictures show the page alone"),
    ("--mute-audio", "the owner hears nothing"),
    (
        "--force-color-profile=srgb",
        "the same colours on every machine",
    ),
    (
        "--disable-background-timer-throttling",
        "every page runs as if it were looked at",
    ),
    ("--disable-backgrounding-occluded-windows", "the same"),
    ("--disable-renderer-backgrounding", "the same"),
    (
        "--disable-back-forward-cache",
        "a page that was left is gone",
    ),
    ("--disable-hang-monitor", "the daemon decides what hangs"),
    (
        "--disable-ipc-flooding-protection",
        "scripts may navigate as often as they like",
    ),
    (
        "--disable-popup-blocking",
        "popups are reported, not swallowed",
    ),
    ("--disable-prompt-on-repost", "no question"),
    (
        "--allow-pre-commit-input",
        "no input is lost while a page loads",
    ),
];

const FEATURES_ON: &[&str] = &[
    "CDPScreenshotNewSurface", // a picture does not wait a frame longer than it must
];

const FEATURES_OFF: &[&str] = &[
    "WebRtcHideLocalIpsWithMdns", // else multicast leaves
    "MediaRouter",                // else SSDP leaves
    "NetworkTimeServiceQuerying", // a request of the browser's own
    "AsyncDns",                   // no resolver of Chromium's
    "DnsOverHttpsUpgrade",        // the same
    "AutofillServerCommunication",
    "OptimizationHints",
    "PrefetchProxy",
    "PreconnectToSearch",
    "AimEnabled",
    "Translate",                        // a bar over the page
    "HttpsUpgrades",                    // http:// means http://
    "HttpsFirstBalancedModeAutoEnable", // the same
    "PaintHolding",                     // the first frame is shown, not held
    "DestroyProfileOnBrowserClose",     // the end is ours
    "WebUIReloadButton",                // toolbar pages nobody sees, 80 ms at the launch
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
];

/// Preferences that no switch sets, written into the profile before the start.
pub const PREFERENCES: &str = r#"{"alternate_error_pages":{"enabled":false},"browser":{"enable_spellchecking":false},"spellcheck":{"dictionaries":[],"dictionary":""},"net":{"network_prediction_options":2},"search":{"suggest_enabled":false},"safebrowsing":{"enabled":false},"signin":{"allowed":false},"webrtc":{"ip_handling_policy":"disable_non_proxied_udp"}}"#;

/// The whole command line. The owner's words come last, and a later word on a switch takes the place of an earlier one.
pub fn command_line(start: &Start<'_>) -> Vec<String> {
    let fixed = BOUNDARY.iter().chain(UNATTENDED);
    let mut line: Vec<String> = fixed.map(|(switch, _)| (*switch).to_owned()).collect();
    line.push(format!(
        "--proxy-server=http://127.0.0.1:{}",
        start.proxy_port
    ));
    line.push(format!(
        "--ignore-certificate-errors-spki-list={}",
        start.uploads_key
    ));
    line.push(format!("--user-data-dir={}", start.profile.display()));
    line.push(
        if start.cbor {
            "--remote-debugging-pipe=cbor"
        } else {
            "--remote-debugging-pipe"
        }
        .to_owned(),
    );
    if !start.sandbox {
        line.push("--no-sandbox".to_owned());
    }
    for switch in start.rung.switches() {
        replace(&mut line, (*switch).to_owned());
    }
    for switch in start.owner.switches() {
        replace(&mut line, switch.clone());
    }
    let features = Features::new(FEATURES_ON, FEATURES_OFF)
        .overlaid(&Features::new(start.rung.features(), &[]))
        .overlaid(start.owner.features());
    line.extend(features.to_switches());
    line
}

fn replace(line: &mut Vec<String>, switch: String) {
    let name = switch.split('=').next().unwrap_or_default();
    line.retain(|other| other.split('=').next() != Some(name));
    line.push(switch);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(owner: &[&str]) -> Vec<String> {
        command_line(&Start {
            rung: Rung::SoftwareX,
            proxy_port: 4_711,
            uploads_key: "KEY=",
            profile: Path::new("/run/profile"),
            cbor: true,
            sandbox: true,
            owner: &OwnerSwitches::parse(owner).unwrap(),
        })
    }

    #[test]
    fn features_stand_in_one_list_each_and_the_owner_has_the_last_word() {
        let line = line(&["--enable-features=SkiaGraphite", "--use-angle=gl"]);
        let count = |start: &str| {
            line.iter()
                .filter(|switch| switch.starts_with(start))
                .count()
        };
        assert_eq!(
            (
                count("--enable-features="),
                count("--disable-features="),
                count("--use-angle=")
            ),
            (1, 1, 1)
        );
        for switch in [
            "--enable-features=CDPScreenshotNewSurface,SkiaGraphite,Vulkan",
            "--use-angle=gl",
        ] {
            assert!(
                line.iter().any(|have| have == switch),
                "{switch} is not in {line:?}"
            );
        }
    }

    #[test]
    fn the_boundary_is_whole_and_no_port_is_open() {
        let line = line(&[]);
        for switch in [
            "--proxy-server=http://127.0.0.1:4711",
            "--proxy-bypass-list=<-loopback>",
            "--disable-quic",
        ] {
            assert!(line.iter().any(|have| have == switch), "{switch}");
        }
        for never in [
            "--remote-debugging-port",
            "--no-sandbox",
            "--disable-gpu",
            "--use-gl=egl",
        ] {
            let named = |have: &String| have == never || have.starts_with(&format!("{never}="));
            assert!(!line.iter().any(named), "{never}");
        }
    }
}
