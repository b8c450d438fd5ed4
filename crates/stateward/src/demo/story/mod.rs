//! The scenarios. Every line is printed after a watch has shown it.

mod operator_killed;
mod phased;
mod scale;
mod versions;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Parser;
use serde_json::Value;
use stateward_cli::{Exit, Session, Style, Verb};
use tokio::time::Instant;

use super::Scenario;
use super::scene::{NAMESPACE, Scene};
use super::sight::Sight;
use super::teller::{Out, Teller};

const FIRST: &str = "1.0";
const GOOD: &str = "2.0";

struct Story<'o> {
    scene: Scene,
    sight: Sight,
    teller: Teller<'o>,
    program: &'o str,
    patience: Duration,
}

/// Runs a scenario.
pub(super) async fn tell<'o>(
    scenario: Scenario,
    scene: Scene,
    program: &'o str,
    patience: Duration,
    out: Out<'o>,
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
        "an embedded Kubernetes in this process: its pods are simulated, the operator is real, time runs {} times as fast",
        story.scene.speed
    ))?;
    story.teller.line("")?;
    match scenario {
        Scenario::Versions => story.versions().await?,
        Scenario::Phased => story.phased().await?,
        Scenario::Scale => story.scale().await?,
        Scenario::OperatorKilled => story.operator_killed().await?,
    }
    story.farewell(scenario, began.elapsed())
}

impl Story<'_> {
    /// Creates a StatefulSet and waits for Ready pods.
    async fn a_database(&mut self, pods: i32) -> Result<()> {
        self.scene.create_set(pods, FIRST).await?;
        self.teller
            .tell(&format!("a database: statefulset/db, {pods} pods of db:{FIRST}"))?;
        let all = usize::try_from(pods)?;
        self.until("its pods Ready", |sight| sight.ready() == all).await?;
        self.teller.tell("they are Ready")
    }

    /// Creates a rollout, and waits for the guard.
    async fn a_plan(&mut self, steps: Value, in_words: &str) -> Result<()> {
        self.scene.create_rollout(steps).await?;
        self.teller
            .tell(&format!("a plan for its versions: rolloutplugin/db, {in_words}"))?;
        let pods = i32::try_from(self.sight.ready())?;
        self.until("the set guarded", |sight| {
            sight.partition == Some(pods) && sight.status.phase == "Successful"
        })
        .await?;
        self.teller.tell(&format!(
            "the operator guards the set: partition {pods}, no pod moves unless a step says so"
        ))
    }

    /// Suggests what to try next.
    fn farewell(&mut self, told: Scenario, took: Duration) -> Result<()> {
        let (elapsed, program) = (self.teller.elapsed(), self.program);
        let wall = took.as_secs_f64();
        self.teller.line("")?;
        self.teller.line(&format!(
            "that was {elapsed} of the cluster's time in {wall:.0} s; try next:"
        ))?;
        let (stage, other) = if told == Scenario::Versions {
            let phased = "one pod at a time, with Prometheus asked before each";
            (
                "the same stage for your own kubectl",
                ("demo --scenario phased", phased),
            )
        } else {
            // The interactive cluster has the objects of this scenario.
            (
                "a database and its steps for your own kubectl",
                ("demo", "a good version and a bad one"),
            )
        };
        for (command, what) in [
            ("demo --interactive", stage),
            other,
            ("plan --help", "what your own rollout would do, before it does"),
        ] {
            self.teller
                .line(&format!("  {:<34}  {what}", format!("{program} {command}")))?;
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

    /// Runs one of our own commands as a user would type it.
    async fn run(&mut self, line: &str, expected: Exit) -> Result<()> {
        #[derive(Parser)]
        struct Line {
            #[command(subcommand)]
            verb: Verb,
        }
        self.teller.typed(&format!("stateward {line}"))?;
        let verb = Line::try_parse_from(std::iter::once("stateward").chain(line.split(' ')))?.verb;
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            client: self.scene.client.clone(),
            namespace: NAMESPACE.into(),
            clock: self.scene.clock.clone(),
            user: None,
            program: "stateward",
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

    /// Waits for a condition.
    async fn until(&mut self, what: &str, check: impl Fn(&Sight) -> bool) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        while !check(&self.sight) {
            match tokio::time::timeout_at(deadline, self.sight.look()).await {
                Ok(looked) => looked?,
                Err(_) => bail!(
                    "not as expected: {what} was expected within {:?}, but {}",
                    self.patience,
                    self.sight.in_words()
                ),
            }
            self.show()?;
        }
        Ok(())
    }

    /// Draws the current state of the rollout, if there is a picture.
    fn show(&mut self) -> Result<()> {
        if !self.teller.out.is_live() {
            return Ok(());
        }
        let picture = self
            .sight
            .picture(Style::of_the_terminal(), self.scene.clock.now(), self.program);
        self.teller.show(&picture)
    }

    /// Lets time pass, and checks that a condition continues to hold.
    async fn stays(&mut self, time: Duration, what: &str, check: impl Fn(&Sight) -> bool) -> Result<()> {
        let until = Instant::now() + self.scene.clock.on_the_timer(time);
        loop {
            ensure!(
                check(&self.sight),
                "not as expected: {what} was to stay so, but {}",
                self.sight.in_words()
            );
            match tokio::time::timeout_at(until, self.sight.look()).await {
                Ok(looked) => looked?,
                Err(_) => return Ok(()),
            }
            self.show()?;
        }
    }

    fn expect_versions<const N: usize>(&self, expected: [&str; N]) -> Result<()> {
        ensure!(
            self.sight.versions() == expected,
            "not as expected: the pods were to run {}, but {}",
            expected.join(" "),
            self.sight.in_words()
        );
        Ok(())
    }

    /// The UIDs of the pods.
    fn pods(&self) -> BTreeMap<String, String> {
        let pods = self.sight.pods.iter();
        pods.map(|(name, pod)| (name.clone(), pod.uid.clone())).collect()
    }
}
