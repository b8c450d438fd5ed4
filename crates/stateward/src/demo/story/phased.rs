//! One pod at a time, with a Prometheus query before each.

use std::time::Duration;

use anyhow::Result;
use stateward_cli::Exit;

use super::{FIRST, GOOD, Story};

impl Story<'_> {
    pub(super) async fn phased(&mut self) -> Result<()> {
        self.a_database(3).await?;
        self.scene.create_phased_rollout().await?;
        self.teller.tell(
            "phasedrollout/db: one pod after the other, and before each Prometheus must have no alert, twice in a row",
        )?;
        self.until("the set guarded", |sight| {
            sight.partition == Some(3) && sight.status.phase == "Updated"
        })
        .await?;
        self.teller.tell(
            "the operator guards the set: partition 3, no pod moves before its checks have succeeded",
        )?;
        self.set_image(GOOD).await?;
        self.until("the first pod released", |sight| sight.partition == Some(2))
            .await?;
        self.teller
            .tell("two checks found no alert: pod db-2 may go, partition 2")?;
        self.scene.alerts.fire(true);
        self.see_updated("db-2", GOOD).await?;
        self.teller
            .tell("an alert begins to fire, say that a backup is running")?;
        self.stays(Duration::from_secs(60), "the second pod", |sight| {
            sight.versions() == [FIRST, FIRST, GOOD]
        })
        .await?;
        self.teller
            .tell("a minute later: the checks fail, and no other pod has moved")?;
        self.run("get db", Exit::Done).await?;
        self.scene.alerts.fire(false);
        self.teller.line("")?;
        self.teller.tell("the alert is over")?;
        self.see_updated("db-1", GOOD).await?;
        self.see_updated("db-0", GOOD).await?;
        self.until("the end of the rollout", |sight| {
            sight.status.phase == "Updated" && sight.partition == Some(3)
        })
        .await?;
        self.expect_versions([GOOD; 3])?;
        self.teller
            .tell("every pod runs the new version, checked before each of them and after the last")
    }
}
