//! The servers by name, and the TCP echo.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{RUNTIME, rpc, say, web};

/// Starts a server, prints its port and the runtime it is linked with, and serves until the process
/// is killed. A proxy has its backend's port.
pub(crate) async fn serve(name: &str, backend: Option<u16>) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    say(&format!("port {} {RUNTIME}", address.port()))?;
    match (name, backend) {
        ("echo", None) => echo(listener).await,
        ("hyper", None) => web::hyper(listener).await,
        ("axum", None) => web::axum(listener).await,
        ("tonic", None) => rpc::serve(listener).await,
        ("proxy", Some(port)) => web::proxy(listener, port).await,
        _ => Err(format!("no server is {name}")),
    }
}

/// Sends back whatever arrives.
async fn echo(listener: TcpListener) -> Result<(), String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        tokio::spawn(echo_one(stream));
    }
}

async fn echo_one(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    // Any error or end of the client ends the connection.
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        if stream.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
