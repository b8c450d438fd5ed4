//! A certificate authority of a test's own.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// An authority that nobody knows until he is told.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate for a server, with its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// Another one every time.
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate()?).map(Self)
    }

    /// What whoever is to trust it has to be given.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for the server of this name or address.
    pub fn sign(&self, name: &str) -> Result<Signed, rcgen::Error> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec![name.to_owned()])?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Signed {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}
