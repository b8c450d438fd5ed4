//! The StatefulSet is scaled while the rollout is paused.

use anyhow::Result;
use serde_json::json;
use stateward_cli::Exit;

use super::{FIRST, GOOD, Story};

impl Story<'_> {
    pub(super) async fn scale(&mut self) -> Result<()> {
        self.a_database(5).await?;
        let steps = json!([{"setWeight": 40}, {"pause": {}}]);
        self.a_plan(
            steps,
            "40 % first, then a pause until a user has looked, then the rest",
        )
        .await?;
        self.set_image(GOOD).await?;
        self.see_updated("db-4", GOOD).await?;
        self.see_updated("db-3", GOOD).await?;
        self.until("the pause", |sight| sight.status.phase == "Paused")
            .await?;
        self.teller
            .tell("two of five are new, and it waits in the pause")?;

        self.teller.typed("kubectl scale statefulset/db --replicas 3")?;
        self.scene.scale(3).await?;
        self.until("three pods, one of them new", |sight| {
            sight.versions() == [FIRST, FIRST, GOOD] && sight.ready() == 3 && sight.partition == Some(2)
        })
        .await?;
        self.teller.tell(
            "40 % of three is one pod: the operator makes it one, partition 2, and stays in the pause",
        )?;
        self.teller.typed("kubectl scale statefulset/db --replicas 7")?;
        self.scene.scale(7).await?;
        self.until("seven pods, db-2 and at most one more of them new", |sight| {
            let versions = sight.versions();
            // Kubernetes may create db-3 before the partition is raised.
            let new = versions.iter().filter(|version| **version == GOOD).count();
            sight.ready() == 7 && versions.get(2) == Some(&GOOD) && new <= 2 && sight.partition == Some(7)
        })
        .await?;
        self.teller.tell(
            "no pod is moved back: db-2 stays new, at most 40 % of seven pods are, and it is still the same pause",
        )?;
        self.run("promote db", Exit::Done).await?;
        self.until("the end of the rollout", |sight| {
            sight.status.phase == "Successful" && sight.partition == Some(7)
        })
        .await?;
        self.expect_versions([GOOD; 7])?;
        self.teller
            .tell("seven pods run the new version: no gate was skipped, and scaling promoted nothing")
    }
}
