//! What is told. Every line is said when a watch has shown it.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Parser;
use serde_json::json;
use stateward_cli::{Exit, Session, Style, Verb};
use tokio::time::Instant;

use super::scene::{BROKEN, NAMESPACE, Scene};
use super::sight::Sight;
use super::teller::Teller;

const FIRST: &str = "1.0";
const GOOD: &str = "2.0";

struct Story<'o> {
    scene: Scene,
    sight: Sight,
    teller: Teller<'o>,
    program: &'o str,
    patience: Duration,
}

/// From the beginning to the end.
pub(super) async fn tell(
    scene: Scene,
    program: &str,
    patience: Duration,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let began = Instant::now();
    let mut story = Story {
        sight: Sight::new(&scene),
        teller: Teller::new(out, scene.clock.clone()),
        scene,
        program,
        patience,
    };
    story.teller.line(&format!(
        "an embedded Kubernetes in this process: its pods are played, the operator is real, time runs {} times as fast",
        story.scene.speed
    ))?;
    story.teller.line("")?;
    story.a_database().await?;
    story.a_good_version().await?;
    story.a_bad_version().await?;
    story.farewell(began.elapsed())
}

impl Story<'_> {
    async fn a_database(&mut self) -> Result<()> {
        self.scene.create_set(FIRST).await?;
        self.teller
            .tell(&format!("a database: statefulset/db, five pods of db:{FIRST}"))?;
        self.until("five pods Ready", |sight| sight.ready() == 5).await?;
        self.teller.tell("its five pods are Ready")?;
        let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]);
        self.scene.create_rollout(steps).await?;
        self.teller.tell(
            "a plan for its versions: rolloutplugin/db, 20 % first, then a pause until somebody has looked, 60 %, the rest",
        )?;
        self.until("the set guarded", |sight| {
            sight.partition == Some(5) && sight.status.phase == "Successful"
        })
        .await?;
        self.teller
            .tell("the operator guards the set: partition 5, no pod moves unless a step says so")
    }

    async fn a_good_version(&mut self) -> Result<()> {
        self.set_image(GOOD).await?;
        self.sight.fewest_ready = self.sight.ready();
        self.until("the first step", |sight| sight.partition == Some(4))
            .await?;
        self.teller
            .tell("step 1 of 3, 20 %: the operator releases one pod, partition 4")?;
        self.see_updated("db-4", GOOD).await?;
        self.until("the pause", |sight| {
            sight.status.phase == "Paused" && sight.status.current_step_index == Some(1)
        })
        .await?;
        self.expect_versions([FIRST, FIRST, FIRST, FIRST, GOOD])?;
        self.teller
            .tell("step 2 of 3 is the pause: one pod is new, four are not, and so it stays")?;
        self.run("get db", Exit::Done).await?;
        self.run("promote db", Exit::Done).await?;
        self.until("the third step", |sight| sight.partition == Some(2))
            .await?;
        self.teller
            .tell("step 3 of 3, 60 %: two more, one after the other, partition 2")?;
        self.see_updated("db-3", GOOD).await?;
        self.see_updated("db-2", GOOD).await?;
        self.until("the rest released", |sight| sight.partition == Some(0))
            .await?;
        self.teller
            .tell("three of five are new and well: the rest follows")?;
        self.see_updated("db-1", GOOD).await?;
        self.see_updated("db-0", GOOD).await?;
        self.until("the end of the rollout", |sight| {
            sight.status.phase == "Successful" && sight.partition == Some(5)
        })
        .await?;
        self.expect_versions([GOOD; 5])?;
        let fewest = self.sight.fewest_ready;
        ensure!(
            fewest == 4,
            "four pods were to stay Ready, but once there were {fewest}"
        );
        self.teller.tell(&format!(
            "every pod runs {GOOD}, four of five were Ready all the time, and the guard is up again"
        ))
    }

    async fn a_bad_version(&mut self) -> Result<()> {
        let before = self.pods();
        self.set_image(BROKEN).await?;
        self.until("db-4 on the new version", |sight| {
            sight.pods.get("db-4").is_some_and(|pod| pod.version == BROKEN)
        })
        .await?;
        self.teller
            .tell(&format!("step 1 of 3, 20 %: pod db-4 starts on {BROKEN}"))?;
        self.until("a crash loop", |sight| {
            let reason = sight.pods.get("db-4").and_then(|pod| pod.reason.as_deref());
            reason == Some("CrashLoopBackOff")
        })
        .await?;
        self.teller
            .tell("pod db-4 crashes, is started again, crashes: CrashLoopBackOff")?;
        self.until("the way back", |sight| sight.status.aborted_reason.is_some())
            .await?;
        self.teller.tell(&format!(
            "the operator turns {BROKEN} down and takes the pod back"
        ))?;
        self.until("db-4 back", |sight| sight.runs("db-4", GOOD)).await?;
        self.teller.tell(&format!("pod db-4 is Ready on {GOOD} again"))?;
        self.until("the end of the return", |sight| {
            sight.status.phase == "Failed" && sight.status.returning.is_none()
        })
        .await?;
        self.expect_versions([GOOD; 5])?;
        let after = self.pods();
        for name in ["db-0", "db-1", "db-2", "db-3"] {
            ensure!(
                before.get(name) == after.get(name),
                "pod {name} was not to be touched"
            );
        }
        self.teller.tell(&format!(
            "the other four were never touched, and {BROKEN} stays out until the template changes or somebody says retry"
        ))?;
        self.run("status db", Exit::Failed).await?;
        self.teller.answer("(exit code 2, for scripts)")
    }

    fn farewell(&mut self, took: Duration) -> Result<()> {
        let (elapsed, program) = (self.teller.elapsed(), self.program);
        let wall = took.as_secs_f64();
        self.teller.line("")?;
        self.teller.line(&format!(
            "that was {elapsed} of the cluster's time in {wall:.0} s; try next:"
        ))?;
        for (command, what) in [
            ("cluster", "an embedded Kubernetes for your own kubectl"),
            (
                "get --help",
                "see rollouts; also status, promote, abort, retry, pause, resume",
            ),
            ("demo --speed 2", "this again, slowly"),
            (
                "operator",
                "for real: the operator, on the cluster of your kubeconfig",
            ),
        ] {
            self.teller
                .line(&format!("  {:<26}{what}", format!("{program} {command}")))?;
        }
        Ok(())
    }

    async fn set_image(&mut self, version: &str) -> Result<()> {
        self.teller
            .typed(&format!("kubectl set image statefulset/db db=db:{version}"))?;
        self.scene.set_image(version).await
    }

    async fn see_updated(&mut self, pod: &str, version: &str) -> Result<()> {
        self.until(&format!("{pod} Ready on {version}"), |sight| {
            sight.runs(pod, version)
        })
        .await?;
        self.teller.tell(&format!("pod {pod} is Ready on {version}"))
    }

    /// Types one of our own commands, as a person would.
    async fn run(&mut self, line: &str, expected: Exit) -> Result<()> {
        #[derive(Parser)]
        struct Line {
            #[command(subcommand)]
            verb: Verb,
        }
        self.teller.typed(&format!("{} {line}", self.program))?;
        let verb = Line::try_parse_from(std::iter::once("stateward").chain(line.split(' ')))?.verb;
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            client: self.scene.client.clone(),
            namespace: NAMESPACE.into(),
            clock: self.scene.clock.clone(),
            program: self.program,
            style: Style {
                colour: false,
                ..Style::of_the_terminal()
            },
            terminal: false,
            out: &mut out,
            talk: &mut talk,
        };
        let exit = verb.perform(session).await?;
        for text in [talk, out] {
            self.teller.answer(&String::from_utf8_lossy(&text))?;
        }
        ensure!(
            exit == expected,
            "it ended with {exit:?} and not with {expected:?}"
        );
        Ok(())
    }

    /// Waits for something to be seen.
    async fn until(&mut self, what: &str, check: impl Fn(&Sight) -> bool) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        while !check(&self.sight) {
            match tokio::time::timeout_at(deadline, self.sight.look()).await {
                Ok(looked) => looked?,
                Err(_) => bail!(
                    "not as told: {what} was expected within {:?}, but {}",
                    self.patience,
                    self.sight.in_words()
                ),
            }
        }
        Ok(())
    }

    fn expect_versions(&self, expected: [&str; 5]) -> Result<()> {
        ensure!(
            self.sight.versions() == expected,
            "not as told: the pods were to run {}, but {}",
            expected.join(" "),
            self.sight.in_words()
        );
        Ok(())
    }

    /// Who the pods are.
    fn pods(&self) -> BTreeMap<String, String> {
        let pods = self.sight.pods.iter();
        pods.map(|(name, pod)| (name.clone(), pod.uid.clone())).collect()
    }
}
