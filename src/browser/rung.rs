//! The rungs of the ladder: Chromium's flag sets from the best GPU path to the last.

use serde::{Deserialize, Serialize};

/// A set of GPU flags with the display that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The GPU through Vulkan, without a display.
    HardwareVulkan,
    /// The GPU through Vulkan on a private X display: headless Chromium has no surface of its own to share a WebGPU
    /// canvas with.
    HardwareVulkanX,
    /// The GPU through OpenGL; WebGPU is usually missing.
    HardwareGl,
    /// The GPU of a Mac: Metal is what Chromium takes by itself.
    HardwareMetal,
    /// The processor, through SwiftShader's Vulkan on a private X display.
    SoftwareX,
    /// The processor without a display; WebGPU in its compatibility mode.
    SoftwareHeadless,
}

/// What the owner asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum GpuChoice {
    /// The best that is proven.
    #[default]
    Auto,
    /// The GPU or nothing.
    Hardware,
    /// The processor, whatever is there.
    Software,
}

impl Rung {
    /// The rungs to try, best first.
    pub fn ladder(choice: GpuChoice) -> Vec<Self> {
        let hardware: &[Self] = if cfg!(target_os = "macos") {
            &[Self::HardwareMetal]
        } else {
            &[
                Self::HardwareVulkan,
                Self::HardwareVulkanX,
                Self::HardwareGl,
            ]
        };
        let software: &[Self] = if cfg!(target_os = "macos") {
            &[Self::SoftwareHeadless]
        } else {
            &[Self::SoftwareX, Self::SoftwareHeadless]
        };
        match choice {
            GpuChoice::Auto => [hardware, software].concat(),
            GpuChoice::Hardware => hardware.to_vec(),
            GpuChoice::Software => software.to_vec(),
        }
    }

    /// Its name in replies, logs and the cache.
    pub fn name(self) -> &'static str {
        match self {
            Self::HardwareVulkan => "hardware-vulkan",
            Self::HardwareVulkanX => "hardware-vulkan-x",
            Self::HardwareGl => "hardware-gl",
            Self::HardwareMetal => "hardware-metal",
            Self::SoftwareX => "software-x",
            Self::SoftwareHeadless => "software-headless",
        }
    }

    /// Whether it wants a private X display.
    pub fn needs_display(self) -> bool {
        matches!(self, Self::HardwareVulkanX | Self::SoftwareX)
    }

    /// Whether it is meant for a GPU; what it really reached, the probe says.
    pub fn wants_hardware(self) -> bool {
        !matches!(self, Self::SoftwareX | Self::SoftwareHeadless)
    }

    /// Its features.
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Self::HardwareVulkan | Self::HardwareVulkanX | Self::SoftwareX => &["Vulkan"],
            Self::HardwareGl | Self::HardwareMetal | Self::SoftwareHeadless => &[],
        }
    }

    /// Its switches. Without `--enable-unsafe-swiftshader` WebGL is gone on a machine without a GPU; `--use-gl=egl`
    /// would turn it off everywhere.
    pub fn switches(self) -> &'static [&'static str] {
        match self {
            Self::HardwareVulkan => &[
                "--use-angle=vulkan",
                "--disable-vulkan-surface",
                "--enable-unsafe-webgpu",
                "--ignore-gpu-blocklist",
            ],
            Self::HardwareVulkanX => &[
                "--ozone-platform=x11",
                "--use-angle=vulkan",
                "--disable-vulkan-surface",
                "--enable-unsafe-webgpu",
                "--ignore-gpu-blocklist",
            ],
            Self::HardwareGl => &[
                "--use-gl=angle",
                "--use-angle=gl-egl",
                "--enable-unsafe-webgpu",
                "--ignore-gpu-blocklist",
            ],
            Self::HardwareMetal => &["--enable-unsafe-webgpu"],
            Self::SoftwareX => &[
                "--ozone-platform=x11",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--use-vulkan=swiftshader",
                "--use-webgpu-adapter=swiftshader",
                "--enable-unsafe-webgpu",
            ],
            Self::SoftwareHeadless => &[
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--use-webgpu-adapter=opengles",
                "--enable-unsafe-webgpu",
            ],
        }
    }
}
