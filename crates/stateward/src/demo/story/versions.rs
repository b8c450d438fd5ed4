//! A good version through its steps and a pause, then one that crashes.

use anyhow::{Result, ensure};
use serde_json::json;
use stateward_cli::Exit;

use super::super::scene::BROKEN;
use super::{FIRST, GOOD, Story};

impl Story<'_> {
    pub(super) async fn versions(&mut self) -> Result<()> {
        self.a_database(5).await?;
        let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]);
        self.a_plan(
            steps,
            "20 % first, then a pause until a user has looked, 60 %, the rest",
        )
        .await?;
        self.a_good_version().await?;
        self.a_bad_version().await
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
            "the other four were never touched, and {BROKEN} stays rejected until the template changes or a user retries it"
        ))?;
        self.run("status db", Exit::Failed).await?;
        self.teller.answer("(exit code 2, for scripts)")
    }
}
