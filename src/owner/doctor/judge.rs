//! From facts to findings: pure, so that every illness can be tested without a machine that has it.

use super::facts::{CLOCK_OFF, Facts, Switches};
use crate::browser::find::{install_command, install_xvfb_command};
use crate::install::State;

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// Works, but not as well as it could.
    Weak,
    Bad,
}

/// One thing that was looked at.
pub(super) struct Finding {
    what: &'static str,
    health: Health,
    said: String,
    mend: Option<Mend>,
}

/// The command that mends it.
pub(super) struct Mend {
    pub(super) line: String,
    /// Whether it can be run without asking: it gives nobody a right and takes nothing away.
    pub(super) is_safe: bool,
}

impl Finding {
    pub(super) fn line(&self) -> String {
        let mark = match self.health {
            Health::Good => "ok  ",
            Health::Weak => "weak",
            Health::Bad => "BAD ",
        };
        format!("{mark} {}: {}", self.what, self.said)
    }

    pub(super) fn mend(&self) -> impl Iterator<Item = &Mend> {
        self.mend.iter()
    }
}

fn good(what: &'static str, said: impl Into<String>) -> Finding {
    Finding {
        what,
        health: Health::Good,
        said: said.into(),
        mend: None,
    }
}

fn ill(
    what: &'static str,
    health: Health,
    said: impl Into<String>,
    line: &str,
    is_safe: bool,
) -> Finding {
    let mend = (!line.is_empty()).then(|| Mend {
        line: line.to_owned(),
        is_safe,
    });
    Finding {
        what,
        health,
        said: said.into(),
        mend,
    }
}

/// Everything, in the order in which a start would fail.
pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    vec![
        install(facts),
        chromium(facts),
        display(facts),
        namespaces(facts),
        groups(facts),
        driver(facts),
        hardware(facts),
        sudo(facts),
        relay(facts),
        clock(facts),
    ]
}

fn install(facts: &Facts) -> Finding {
    const WHAT: &str = "the install";
    match &facts.state {
        State::Absent => ill(
            WHAT,
            Health::Weak,
            "there is none; `start --dev` works without",
            "sudo gpu-browser install",
            false,
        ),
        State::Unfinished { what } => ill(
            WHAT,
            Health::Bad,
            format!(
                "an {what} was left unfinished; finish it, or take it back with `sudo gpu-browser install --undo`"
            ),
            &format!("sudo gpu-browser {what} --yes"),
            false,
        ),
        State::Installed { version, .. } if !is_version(version, facts.version) => ill(
            WHAT,
            Health::Weak,
            format!("{version} is installed, and this is {}", facts.version),
            "sudo gpu-browser update --yes",
            false,
        ),
        State::Installed {
            version,
            proven: false,
        } => ill(
            WHAT,
            Health::Bad,
            format!("{version} is installed and not proven"),
            "sudo gpu-browser self-test",
            true,
        ),
        State::Installed {
            version,
            proven: true,
        } => good(WHAT, format!("{version}, proven")),
    }
}

/// The folder of a version is named by it and a part of the program's digest.
fn is_version(folder: &str, version: &str) -> bool {
    folder
        .rsplit_once('-')
        .is_some_and(|(named, _)| named == version)
}

fn chromium(facts: &Facts) -> Finding {
    const WHAT: &str = "Chromium";
    match &facts.chromium {
        Ok(path) => good(WHAT, path.display().to_string()),
        Err(missing) => ill(
            WHAT,
            Health::Bad,
            missing.to_string(),
            install_command(),
            false,
        ),
    }
}

fn display(facts: &Facts) -> Finding {
    const WHAT: &str = "Xvfb";
    if facts.has_display {
        return good(WHAT, "it is there, or not needed");
    }
    ill(
        WHAT,
        Health::Weak,
        "it is missing; some drivers draw only on a display",
        install_xvfb_command(),
        true,
    )
}

fn namespaces(facts: &Facts) -> Finding {
    const WHAT: &str = "user namespaces";
    let Err(why) = &facts.namespace else {
        return good(
            WHAT,
            "the browser gets a network of its own, and its sandbox",
        );
    };
    let (said, line) = switched_off(&facts.switches, why);
    ill(WHAT, Health::Bad, said, line, false)
}

/// Which switch it is.
fn switched_off(switches: &Switches, why: &str) -> (String, &'static str) {
    match switches {
        Switches { most: Some(0), .. } => (
            "user.max_user_namespaces is 0".to_owned(),
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        Switches { unprivileged: Some(0), .. } => (
            "kernel.unprivileged_userns_clone is 0".to_owned(),
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        Switches { apparmor: Some(1), has_profile: false, .. } => (
            "AppArmor keeps them from programs without a profile (kernel.apparmor_restrict_unprivileged_userns is 1), and there is none of ours".to_owned(),
            "sudo gpu-browser install",
        ),
        Switches { apparmor: Some(1), .. } => (
            "AppArmor keeps them from programs without a profile, and ours is not loaded or not for this program".to_owned(),
            "sudo gpu-browser update",
        ),
        Switches { selinux: true, .. } => (
            format!("SELinux enforces its policy, which may refuse them ({why}); this shows what it refused"),
            "sudo ausearch -m avc -ts recent",
        ),
        Switches { filtered: true, .. } => (
            format!("system calls are filtered, as in a container ({why}); start it outside, or give the container a seccomp profile that lets `unshare` and `clone` through"),
            "",
        ),
        _ => (format!("the kernel refuses them: {why}"), ""),
    }
}

fn groups(facts: &Facts) -> Finding {
    const WHAT: &str = "the GPU's device nodes";
    if !facts.has_gpu {
        return ill(
            WHAT,
            Health::Weak,
            "there are none: no GPU, or no driver for it; pages are drawn in software",
            "",
            false,
        );
    }
    let missing: Vec<String> = facts
        .missing_groups
        .iter()
        .map(|(group, node)| format!("{} is for the group {group}", node.display()))
        .collect();
    if missing.is_empty() {
        return good(WHAT, "they can be opened");
    }
    let line = match facts.state {
        State::Installed { .. } => "sudo gpu-browser update --yes".to_owned(),
        _ => {
            let groups: Vec<&str> = facts
                .missing_groups
                .iter()
                .map(|(group, _)| group.as_str())
                .collect();
            format!("sudo usermod -aG {} \"$USER\"", groups.join(","))
        }
    };
    ill(WHAT, Health::Bad, missing.join("; "), &line, false)
}

fn driver(facts: &Facts) -> Finding {
    const WHAT: &str = "a Vulkan driver";
    if facts.has_vulkan {
        return good(WHAT, "there is one");
    }
    let health = if facts.has_gpu {
        Health::Bad
    } else {
        Health::Weak
    };
    ill(
        WHAT,
        health,
        "there is none, so WebGPU is drawn in software; install your GPU's driver (Mesa's is `mesa-vulkan-drivers`, `vulkan-radeon` or `vulkan-intel`)",
        "",
        false,
    )
}

fn hardware(facts: &Facts) -> Finding {
    const WHAT: &str = "rendering";
    match (facts.has_gpu, facts.drew_in_hardware) {
        (true, Some(false)) => ill(
            WHAT,
            Health::Bad,
            "the last start drew in software though a GPU is there",
            "gpu-browser start --dev --gpu hardware",
            false,
        ),
        (_, Some(true)) => good(WHAT, "the last start drew on the GPU"),
        (false, Some(false)) => good(WHAT, "in software, as there is no GPU"),
        (_, None) => good(
            WHAT,
            "not known yet: `gpu-browser self-test` draws and says",
        ),
    }
}

fn sudo(facts: &Facts) -> Finding {
    const WHAT: &str = "sudo";
    if facts.has_sudo {
        return good(WHAT, "it is there");
    }
    ill(
        WHAT,
        Health::Weak,
        "it is missing, so an installed server can be started by root alone; install it, then run `gpu-browser update` as root",
        "",
        false,
    )
}

fn relay(facts: &Facts) -> Finding {
    const WHAT: &str = "the relay";
    let (relay, reached) = &facts.relay;
    match reached {
        Ok(()) => good(WHAT, format!("{relay} takes connections")),
        Err(why) => ill(
            WHAT,
            Health::Weak,
            format!(
                "{relay} cannot be reached: {why}. Agents on this machine can use `--relay local`; others need a relay that both reach"
            ),
            "",
            false,
        ),
    }
}

fn clock(facts: &Facts) -> Finding {
    const WHAT: &str = "the clock";
    match facts.clock_off {
        Some(off) if off > CLOCK_OFF => ill(
            WHAT,
            Health::Bad,
            format!(
                "it is {} minutes off, so that certificates are not believed",
                off.as_secs() / 60
            ),
            "sudo timedatectl set-ntp true",
            true,
        ),
        Some(_) => good(WHAT, "it is right"),
        None => good(WHAT, "nobody could be asked"),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
