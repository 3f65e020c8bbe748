//! Getting a browser that draws: rung after rung, each proven by pixels, the verdict remembered.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout, timeout_at};

use super::StartError;
use super::canary::{self, CanaryError};
use crate::browser::account::has_gpu;
use crate::browser::chromium::{Body, Chromium, Setup};
use crate::browser::folder::RunFolder;
use crate::browser::page::{Page, PageError, Viewport};
use crate::browser::probe::{self, Verdict};
use crate::browser::rung::{GpuChoice, Rung};
use crate::browser::targets::Credential;
use crate::place;
use crate::policy::limits::{PROBE_CACHE, RUNG};
use crate::proxy::Proxy;
use crate::proxy::uploads::store::{Change, Put, StoreRefusal, UploadPath};
use crate::proxy::uploads::{ORIGIN, UploadStore};

/// The upload that the probe is served as, before any agent is there.
const PROBE: &str = "gpu-browser-probe.html";
/// The proxy has seen the password within this after the priming page was loaded.
const PRIMED: Duration = Duration::from_secs(2);

/// Why a rung is not taken.
enum Unproven {
    /// Something of this rung; the next one may do.
    Rung(String),
    /// The boundary does not hold, on whatever rung.
    Boundary(CanaryError),
}

/// What every launch of a session needs.
pub(super) struct Kit {
    pub(super) setup: Setup,
    pub(super) folder: RunFolder,
    pub(super) proxy: Arc<Proxy>,
    pub(super) uploads: Arc<UploadStore>,
}

impl Kit {
    /// Starts the browser on a rung, with the proxy on its only socket; it is given away once it was seen to stay inside.
    pub(super) async fn launch(&self, rung: Rung) -> Result<(Chromium, Body), StartError> {
        let (chromium, body, listener) = Chromium::launch(&self.setup, rung, &self.folder).await?;
        let believed = match self.proxy.adopt(listener) {
            Ok(()) => canary::sing(&chromium, &self.proxy)
                .await
                .map_err(StartError::from),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = believed {
            body.end(Duration::ZERO).await;
            return Err(error);
        }
        Ok((chromium, body))
    }

    /// Opens a blank page whose context the proxy knows.
    pub(super) async fn open(
        &self,
        chromium: &Chromium,
        viewport: Viewport,
    ) -> Result<Page, PageError> {
        let issued = self.proxy.issue();
        let user = issued.user.clone();
        let credential = Credential {
            user: issued.user,
            password: issued.password,
        };
        let opened = match Page::open(chromium, credential, viewport).await {
            Ok(page) if timeout(PRIMED, self.proxy.wait_primed(&user)).await == Ok(true) => {
                return Ok(page);
            }
            Ok(page) => {
                page.close().await;
                Err(PageError::NotPrimed(
                    "the proxy has not seen its password".to_owned(),
                ))
            }
            Err(error) => Err(error),
        };
        self.proxy.retire(&user);
        opened
    }

    /// Primes a page anew whose browser has lost the password.
    pub(super) async fn prime_again(&self, page: &Page) -> Result<(), PageError> {
        self.proxy.unprime(page.user());
        page.prime().await?;
        match timeout(PRIMED, self.proxy.wait_primed(page.user())).await {
            Ok(true) => Ok(()),
            _ => Err(PageError::NotPrimed(
                "the proxy has not seen its password".to_owned(),
            )),
        }
    }

    /// The best browser that this machine gives: the remembered rung, or the first of the ladder that is whole, or the
    /// best of what is left.
    pub(super) async fn climb(
        &self,
        choice: GpuChoice,
        tell: &impl Fn(String),
    ) -> Result<(Chromium, Body, Verdict), StartError> {
        let memory = Memory::of(self, choice);
        if let Some(verdict) = memory.recall() {
            match self.launch(verdict.rung).await {
                Ok((chromium, body)) => return Ok((chromium, body, verdict)),
                Err(StartError::Canary(error)) if error.is_leak() => return Err(error.into()),
                Err(error) => tracing::info!(%error, "the remembered rung does not start"),
            }
        }
        let mut best: Option<Verdict> = None;
        let mut failures = Vec::new();
        for rung in rungs(choice) {
            tell(format!("trying {}", rung.name()));
            match self.prove(rung).await {
                Ok((chromium, body, verdict))
                    if accepts(choice, &verdict) && verdict.is_whole() =>
                {
                    memory.keep(&verdict);
                    return Ok((chromium, body, verdict));
                }
                Ok((_, body, verdict)) => {
                    body.end(Duration::from_secs(1)).await;
                    failures.push(format!("{}: {}", rung.name(), shortfall(choice, &verdict)));
                    if accepts(choice, &verdict)
                        && best
                            .as_ref()
                            .is_none_or(|best| verdict.rank() > best.rank())
                    {
                        best = Some(verdict);
                    }
                }
                Err(Unproven::Rung(reason)) => failures.push(format!("{}: {reason}", rung.name())),
                Err(Unproven::Boundary(error)) => return Err(error.into()),
            }
            if let Some(last) = failures.last() {
                tell(last.clone());
            }
        }
        let Some(verdict) = best.filter(|verdict| verdict.webgl.proven) else {
            return Err(StartError::NothingDraws(failures));
        };
        let (chromium, body) = self.launch(verdict.rung).await?;
        memory.keep(&verdict);
        Ok((chromium, body, verdict))
    }

    async fn prove(&self, rung: Rung) -> Result<(Chromium, Body, Verdict), Unproven> {
        let deadline = Instant::now() + RUNG;
        let failed = |reason: &str| Unproven::Rung(reason.to_owned());
        let (chromium, body) = match timeout_at(deadline, self.launch(rung)).await {
            Ok(Err(StartError::Canary(error))) if error.is_leak() => {
                return Err(Unproven::Boundary(error));
            }
            Ok(launched) => launched.map_err(|error| failed(&error.to_string()))?,
            Err(_) => return Err(failed("it did not start in time")),
        };
        let proven = timeout_at(deadline, self.probe(&chromium, rung, deadline)).await;
        let reason = match proven {
            Ok(Ok(verdict)) => return Ok((chromium, body, verdict)),
            Ok(Err(reason)) => reason,
            Err(_) => "it hung".to_owned(),
        };
        body.end(Duration::ZERO).await;
        Err(Unproven::Rung(reason))
    }

    /// What a running browser does now; the page of the probe is gone again afterwards.
    pub(super) async fn prove_again(&self, chromium: &Chromium) -> Result<Verdict, String> {
        let deadline = Instant::now() + RUNG;
        let probing = self.probe(chromium, chromium.rung, deadline);
        let proven = timeout(RUNG, probing).await;
        proven.unwrap_or_else(|_| Err("it hung".to_owned()))
    }

    /// Forgets what starts have remembered: the next one proves anew.
    pub(super) fn forget_verdicts(&self) {
        for choice in [GpuChoice::Auto, GpuChoice::Hardware, GpuChoice::Software] {
            if let Some(file) = Memory::of(self, choice).file {
                // There may be none.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    async fn probe(
        &self,
        chromium: &Chromium,
        rung: Rung,
        deadline: Instant,
    ) -> Result<Verdict, String> {
        let path = self.put_probe().map_err(|error| error.to_string())?;
        let outcome = match self.open(chromium, probe::VIEWPORT).await {
            Ok(page) => {
                let verdict = probe::run(&page, &format!("{ORIGIN}/{PROBE}"), rung, deadline).await;
                page.close().await;
                self.proxy.retire(page.user());
                verdict.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let gone = self.uploads.apply(Change {
            delete: vec![path],
            ..Change::default()
        });
        gone.map_err(|error| error.to_string()).and(outcome)
    }

    fn put_probe(&self) -> Result<UploadPath, StoreRefusal> {
        let path = UploadPath::parse(PROBE)?;
        let bytes = Bytes::from_static(probe::PAGE.as_bytes());
        let put = Put {
            path: path.clone(),
            bytes,
            content_type: None,
            offset: None,
        };
        self.uploads.apply(Change {
            put: vec![put],
            ..Change::default()
        })?;
        Ok(path)
    }
}

/// The rungs worth a try: without a device node no driver can be reached, so the hardware ones would only cost time.
fn rungs(choice: GpuChoice) -> Vec<Rung> {
    let skip = choice == GpuChoice::Auto && !has_gpu();
    Rung::ladder(choice)
        .into_iter()
        .filter(|rung| !(skip && rung.wants_hardware()))
        .collect()
}

fn accepts(choice: GpuChoice, verdict: &Verdict) -> bool {
    match choice {
        GpuChoice::Auto => verdict.hardware || !verdict.rung.wants_hardware(),
        GpuChoice::Hardware => verdict.hardware,
        GpuChoice::Software => !verdict.hardware,
    }
}

fn shortfall(choice: GpuChoice, verdict: &Verdict) -> String {
    let webgl = verdict
        .webgl
        .reason
        .as_ref()
        .map(|reason| format!("WebGL2: {reason}"));
    let webgpu = verdict
        .webgpu
        .reason
        .as_ref()
        .map(|reason| format!("WebGPU: {reason}"));
    let kind = (!accepts(choice, verdict))
        .then(|| format!("it draws in {} ({})", verdict.word(), verdict.webgl.name));
    [kind, webgl, webgpu]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// The verdict of an earlier start, valid for the same browser, driver and wishes.
struct Memory {
    file: Option<PathBuf>,
    key: u64,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    key: u64,
    at: u64,
    verdict: Verdict,
}

impl Memory {
    fn of(kit: &Kit, choice: GpuChoice) -> Self {
        let mut hasher = DefaultHasher::new();
        let setup = &kit.setup;
        format!("{choice:?} {:?} {}", setup.switches, setup.sandbox).hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        for path in [
            setup.program.as_path(),
            Path::new("/usr/bin/Xvfb"),
            Path::new("/proc/driver/nvidia/version"),
        ] {
            fingerprint(path).hash(&mut hasher);
        }
        for folder in ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/dev/dri"] {
            let mut names: Vec<_> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| e.path())
                .collect();
            names.sort();
            names
                .iter()
                .for_each(|path| (path, fingerprint(path)).hash(&mut hasher));
        }
        Self {
            file: place::cache_folder().map(|folder| folder.join(format!("probe-{choice:?}.json"))),
            key: hasher.finish(),
        }
    }

    fn recall(&self) -> Option<Verdict> {
        let remembered: Remembered =
            serde_json::from_slice(&std::fs::read(self.file.as_ref()?).ok()?).ok()?;
        let age = now().checked_sub(remembered.at)?;
        (remembered.key == self.key && age < PROBE_CACHE.as_secs()).then_some(remembered.verdict)
    }

    /// A memory that cannot be kept costs the next start a probe, and nothing else.
    fn keep(&self, verdict: &Verdict) {
        let write = || -> Option<()> {
            let file = self.file.as_ref()?;
            std::fs::create_dir_all(file.parent()?).ok()?;
            let remembered = Remembered {
                key: self.key,
                at: now(),
                verdict: verdict.clone(),
            };
            let whole = file.with_extension(format!("{}.tmp", std::process::id()));
            std::fs::write(&whole, serde_json::to_vec(&remembered).ok()?).ok()?;
            std::fs::rename(whole, file).ok()
        };
        if write().is_none() {
            tracing::debug!("the verdict of the probe could not be kept");
        }
    }
}

/// Size and age of a file: they change with its version.
fn fingerprint(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let metadata = path.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
