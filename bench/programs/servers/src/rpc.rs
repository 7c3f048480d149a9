//! gRPC with tonic: the published health service, because its messages need no compiler for
//! protocol files.

use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::clients::{Job, Span, repeat};
use crate::tally::Tally;

/// Serves the health service.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), String> {
    let (_reporter, service) = tonic_health::server::health_reporter();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = Server::builder().add_service(service).serve_with_incoming(incoming);
    server.await.map_err(|error| error.to_string())
}

/// Puts unary calls on the server at the port: `tasks` tasks share each connection.
pub(crate) async fn load(port: u16, connections: usize, tasks: usize, span: Span) -> Tally {
    let mut jobs = Vec::new();
    for _ in 0..connections {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let channel = endpoint.expect("an address").connect().await.expect("the server listens");
        jobs.extend((0..tasks).map(|_| Check(HealthClient::new(channel.clone()))));
    }
    repeat(jobs, 1, span, || ()).await
}

struct Check(HealthClient<Channel>);

impl Job for Check {
    async fn once(&mut self) {
        let request = HealthCheckRequest { service: String::new() };
        let reply = self.0.check(request).await.expect("the server replies");
        assert_eq!(reply.into_inner().status, 1, "the server is not serving");
    }
}
