//! Which cluster, and which namespace of it: kubectl's flags and kubectl's files.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::call::quoted;
use crate::error::Error;

/// kubectl's flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Access {
    /// The kubeconfig to use instead of $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace to look in
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The user to act as
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// A group to act as, together with --as; may be given more than once
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

impl Access {
    /// A client, and the namespace that is meant.
    pub async fn connect(&self) -> Result<(Client, String), Error> {
        let mut config = self.config().await?;
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = (!self.groups.is_empty()).then(|| self.groups.clone());
        }
        let namespace = self.namespace_or(&config.default_namespace);
        let client = Client::try_from(config).map_err(|error| Error::Access(error.to_string()))?;
        Ok((client, namespace))
    }

    /// The namespace that was named, or `default`.
    pub(crate) fn namespace_or(&self, default: &str) -> String {
        self.namespace.clone().unwrap_or_else(|| default.to_owned())
    }

    /// How to call us for the same cluster again, as the same user.
    pub(crate) fn again(&self, program: &str) -> String {
        let Self {
            kubeconfig,
            context,
            namespace: _,
            user,
            groups,
        } = self;
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--kubeconfig", &kubeconfig),
            ("--context", context),
            ("--as", user),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_ref()?)))
            .chain(groups.iter().map(|group| ("--as-group", group)));
        let words = flags.map(|(flag, value)| format!(" {flag} {}", quoted(value)));
        format!("{program}{}", words.collect::<String>())
    }

    async fn config(&self) -> Result<Config, Error> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig =
                    Kubeconfig::read_from(path).map_err(|error| Error::Access(error.to_string()))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await
            }
            // Without a kubeconfig we may be in a pod.
            None if self.context.is_none() => {
                return Config::infer()
                    .await
                    .map_err(|error| Error::Access(error.to_string()));
            }
            None => Config::from_kubeconfig(&options).await,
        };
        config.map_err(|error| Error::Access(error.to_string()))
    }
}
