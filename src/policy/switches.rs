//! Chromium switches that the owner may add with `--chromium-flag`: GPU settings on a list, and nothing else.
//!
//! A switch could undo the sandbox, the proxy or the closed debugging port, so there is no way round the list. Chromium
//! honours only the last `--enable-features` and the last `--disable-features`, so the owner's features are merged with ours
//! into one of each.

use std::collections::BTreeSet;

/// What may stand after the `=` of a switch.
enum Value {
    /// Nothing at all.
    None,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A number in this range.
    Number(f64, f64),
    /// Names of [`FEATURES`], with commas between them.
    Features,
}

/// The switches on the list.
const SWITCHES: &[(&str, Value)] = &[
    ("--disable-features", Value::Features),
    ("--disable-gpu-driver-bug-workarounds", Value::None),
    ("--disable-vulkan-surface", Value::None),
    ("--enable-features", Value::Features),
    ("--enable-gpu-rasterization", Value::None),
    ("--enable-unsafe-swiftshader", Value::None),
    ("--enable-unsafe-webgpu", Value::None),
    ("--enable-zero-copy", Value::None),
    ("--force-device-scale-factor", Value::Number(0.1, 4.0)),
    (
        "--gpu-driver-bug-list-test-group",
        Value::Number(0.0, 1_000.0),
    ),
    ("--ignore-gpu-blocklist", Value::None),
    ("--max-active-webgl-contexts", Value::Number(1.0, 256.0)),
    ("--ozone-platform", Value::OneOf(&["headless", "x11"])),
    (
        "--use-angle",
        Value::OneOf(&[
            "default",
            "gl",
            "gl-egl",
            "gles",
            "gles-egl",
            "metal",
            "swiftshader",
            "vulkan",
        ]),
    ),
    ("--use-gl", Value::OneOf(&["angle"])),
    ("--use-vulkan", Value::OneOf(&["native", "swiftshader"])),
    (
        "--use-webgpu-adapter",
        Value::OneOf(&["default", "opengles", "swiftshader"]),
    ),
];

/// Features that have to do with the GPU alone.
const FEATURES: &[&str] = &[
    "CDPScreenshotNewSurface",
    "CanvasOopRasterization",
    "DefaultANGLEMetal",
    "DefaultANGLEOpenGL",
    "DefaultANGLEVulkan",
    "EnableDrDc",
    "SkiaGraphite",
    "SkiaGraphitePrecompilation",
    "Vulkan",
    "VulkanFromANGLE",
    "WebGPUBlobCache",
    "WebGPUDeveloperFeatures",
    "WebGPUExperimentalFeatures",
];

/// Why a switch was not taken; nothing is started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwitchRefusal {
    /// The switch is not on the list.
    #[error(
        "--chromium-flag {switch:?} is not a GPU setting that may be given; the nearest one is {nearest}"
    )]
    Unknown {
        /// The switch without its value.
        switch: String,
        /// The nearest one on the list.
        nearest: &'static str,
    },
    /// The value is none that the switch takes.
    #[error("--chromium-flag {switch}: {value:?} does not fit; it takes {takes}")]
    BadValue {
        /// The switch.
        switch: &'static str,
        /// The value as it came.
        value: String,
        /// What fits.
        takes: String,
    },
    /// A feature is not on the list.
    #[error(
        "--chromium-flag {switch}: {feature:?} is not a GPU feature that may be given; the nearest one is {nearest}"
    )]
    UnknownFeature {
        /// The switch.
        switch: &'static str,
        /// The feature as it came.
        feature: String,
        /// The nearest one on the list.
        nearest: &'static str,
    },
}

/// Features switched on and off, each named once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    enabled: BTreeSet<String>,
    disabled: BTreeSet<String>,
}

impl Features {
    /// From names.
    pub fn new(enabled: &[&str], disabled: &[&str]) -> Self {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            enabled: own(enabled),
            disabled: own(disabled),
        }
    }

    /// These features with others over them: where both name one, the others decide.
    #[must_use]
    pub fn overlaid(mut self, over: &Self) -> Self {
        self.enabled.retain(|name| !over.disabled.contains(name));
        self.disabled.retain(|name| !over.enabled.contains(name));
        self.enabled.extend(over.enabled.iter().cloned());
        self.disabled.extend(over.disabled.iter().cloned());
        self
    }

    /// At most one `--enable-features` and one `--disable-features`.
    pub fn to_switches(&self) -> Vec<String> {
        [
            ("--enable-features", &self.enabled),
            ("--disable-features", &self.disabled),
        ]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(switch, names)| {
            format!(
                "{switch}={}",
                names
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(",")
            )
        })
        .collect()
    }
}

/// The owner's switches, all of them on the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerSwitches {
    switches: Vec<String>,
    features: Features,
}

impl OwnerSwitches {
    /// Parses what the owner gave, each as `--switch`, `--switch=value` or the same without dashes.
    pub fn parse<T: AsRef<str>>(flags: impl IntoIterator<Item = T>) -> Result<Self, SwitchRefusal> {
        let mut owner = Self::default();
        for flag in flags {
            owner.add(flag.as_ref())?;
        }
        Ok(owner)
    }

    /// The switches that are no features, in the order they were given.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// The features, to be laid over our own.
    pub fn features(&self) -> &Features {
        &self.features
    }

    fn add(&mut self, flag: &str) -> Result<(), SwitchRefusal> {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let dashed = format!("--{}", name.trim_start_matches('-'));
        let Some((switch, takes)) = SWITCHES.iter().find(|(switch, _)| *switch == dashed) else {
            let names = SWITCHES.iter().map(|(switch, _)| *switch);
            return Err(SwitchRefusal::Unknown {
                switch: cut(name),
                nearest: nearest(names, &dashed),
            });
        };
        if let Value::Features = takes {
            return self.add_features(switch, value.unwrap_or_default());
        }
        if !takes.fits(value) {
            return Err(SwitchRefusal::BadValue {
                switch,
                value: cut(value.unwrap_or_default()),
                takes: takes.describe(),
            });
        }
        self.switches
            .push(value.map_or(dashed.clone(), |value| format!("{dashed}={value}")));
        Ok(())
    }

    /// Only a bare name is taken: `Name:param/value` and `Name<Trial` would carry settings that are on no list.
    fn add_features(&mut self, switch: &'static str, names: &str) -> Result<(), SwitchRefusal> {
        for name in names.split(',') {
            if !FEATURES.contains(&name) {
                let nearest = nearest(FEATURES.iter().copied(), name);
                return Err(SwitchRefusal::UnknownFeature {
                    switch,
                    feature: cut(name),
                    nearest,
                });
            }
            let one = if switch == "--enable-features" {
                Features::new(&[name], &[])
            } else {
                Features::new(&[], &[name])
            };
            self.features = std::mem::take(&mut self.features).overlaid(&one);
        }
        Ok(())
    }
}

impl Value {
    fn fits(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::None, None) => true,
            (Self::OneOf(words), Some(value)) => words.contains(&value),
            (Self::Number(least, most), Some(value)) => {
                let plain = value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
                plain
                    && value
                        .parse()
                        .is_ok_and(|number: f64| (*least..=*most).contains(&number))
            }
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::None => "no value".to_owned(),
            Self::OneOf(words) => words.join(", "),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Features => "names of features".to_owned(),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The name on the list that is spelled most like this one.
fn nearest(names: impl Iterator<Item = &'static str>, to: &str) -> &'static str {
    let to = cut(to);
    let alike = |name: &&str| strsim::jaro_winkler(name, &to);
    names
        .max_by(|a, b| alike(a).total_cmp(&alike(b)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_could_open_the_boundary_is_refused_by_name() {
        let flags = "--no-sandbox no-sandbox --proxy-server=direct:// --proxy-bypass-list=* --remote-debugging-port=9222 \
            --remote-debugging-address=0.0.0.0 --host-resolver-rules=MAP --disable-web-security --load-extension=/tmp/x \
            --user-data-dir=/home --gpu-launcher=sh --renderer-cmd-prefix=sh --utility-cmd-prefix=sh --enable-features \
            --js-flags=x --single-process --Use-Angle=vulkan =";
        for flag in flags.split_whitespace().chain(["", "--use-angle =vulkan"]) {
            let refused = OwnerSwitches::parse([flag]).unwrap_err().to_string();
            assert!(refused.contains("nearest"), "{flag}: {refused}");
        }
    }

    #[test]
    fn a_value_is_checked_as_well() {
        let flags = "--use-angle=../../lib --use-angle --use-gl=egl --enable-unsafe-webgpu=1 --ozone-platform=wayland \
            --force-device-scale-factor=9 --force-device-scale-factor=NaN --max-active-webgl-contexts=-1 \
            --max-active-webgl-contexts=1e2";
        for flag in flags
            .split_whitespace()
            .chain(["--use-vulkan=native --no-sandbox"])
        {
            assert!(
                matches!(
                    OwnerSwitches::parse([flag]),
                    Err(SwitchRefusal::BadValue { .. })
                ),
                "{flag}"
            );
        }
    }

    #[test]
    fn gpu_settings_are_taken() {
        let given = [
            "--use-angle=vulkan",
            "ignore-gpu-blocklist",
            "--force-device-scale-factor=1.5",
        ];
        let owner = OwnerSwitches::parse(given).unwrap();
        assert_eq!(
            owner.switches(),
            [
                "--use-angle=vulkan",
                "--ignore-gpu-blocklist",
                "--force-device-scale-factor=1.5"
            ]
        );
    }

    #[test]
    fn the_nearest_switch_and_feature_are_named() {
        let refused = OwnerSwitches::parse(["--use-angel=vulkan"]).unwrap_err();
        assert_eq!(
            refused,
            SwitchRefusal::Unknown {
                switch: "--use-angel".into(),
                nearest: "--use-angle"
            }
        );
        let refused = OwnerSwitches::parse(["--enable-features=SkiaGraphit"]).unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("the nearest one is SkiaGraphite"),
            "{refused}"
        );
    }

    #[test]
    fn a_feature_with_parameters_or_off_the_list_is_refused() {
        for names in [
            "WebRtcHideLocalIpsWithMdns",
            "Vulkan:a/b",
            "Vulkan<Trial",
            "Vulkan,MediaRouter",
            "Vulkan,",
            "vulkan",
        ] {
            let refused =
                OwnerSwitches::parse([format!("--disable-features={names}")]).unwrap_err();
            assert!(
                matches!(refused, SwitchRefusal::UnknownFeature { .. }),
                "{names}"
            );
        }
    }

    #[test]
    fn features_end_up_in_one_switch_each_and_the_owner_decides() {
        let ours = Features::new(
            &["Vulkan", "CDPScreenshotNewSurface"],
            &["MediaRouter", "SkiaGraphite"],
        );
        let given = [
            "--enable-features=SkiaGraphite",
            "--disable-features=Vulkan",
            "--enable-features=EnableDrDc",
        ];
        let owner = OwnerSwitches::parse(given).unwrap();
        assert!(owner.switches().is_empty());
        assert_eq!(
            ours.overlaid(owner.features()).to_switches(),
            [
                "--enable-features=CDPScreenshotNewSurface,EnableDrDc,SkiaGraphite",
                "--disable-features=MediaRouter,Vulkan"
            ]
        );
    }
}
