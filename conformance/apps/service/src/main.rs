//! A small web service of the usual parts: axum in front, SQLite through sqlx behind, gRPC by
//! tonic, calls to other services by reqwest, a log on disk, and a graceful shutdown that loses
//! nothing. It is not aware of blitz-io.
//!
//! `service FOLDER` keeps its files in the folder, prints the addresses it listens on, and
//! at its end what it did.

mod rpc;
mod store;
mod web;

use std::{error::Error, path::PathBuf, sync::Arc};

use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{broadcast, mpsc, watch},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::{rpc::Notes, store::Store, web::Web};

/// Waits until shutdown is requested.
async fn until_stop(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is the end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: service FOLDER")?);
    tokio::fs::create_dir_all(&folder).await?;
    let store = Store::open(&folder.join("notes.db")).await?;
    let (added, _) = broadcast::channel(1024);
    let (log, lines) = mpsc::channel(64);
    let (stop, stopped) = watch::channel(false);
    let writer = tokio::spawn(web::write_log(folder.join("notes.log"), lines));

    let http = TcpListener::bind("127.0.0.1:0").await?;
    let grpc = TcpListener::bind("127.0.0.1:0").await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    println!("http {}", http.local_addr()?);
    println!("grpc {}", grpc.local_addr()?);

    let notes = Notes { store: store.clone(), added: added.clone() };
    let client = reqwest::Client::new();
    let own = http.local_addr()?;
    let router = web::router(Web {
        store: store.clone(),
        added,
        log,
        client,
        own,
        stopped: stopped.clone(),
        waiting: Arc::default(),
    });
    let http = tokio::spawn(
        axum::serve(http, router).with_graceful_shutdown(until_stop(stopped.clone())).into_future(),
    );
    let grpc = tokio::spawn(
        Server::builder()
            .add_service(notes)
            .serve_with_incoming_shutdown(TcpListenerStream::new(grpc), until_stop(stopped)),
    );

    let by = tokio::select! {
        _ = interrupt.recv() => "interrupt",
        _ = terminate.recv() => "terminate",
    };
    stop.send_replace(true);
    http.await??;
    grpc.await??;
    // The router held the last sender, which is dropped by now.
    let logged = writer.await??;
    let kept = store.count().await?;
    store.close().await;
    println!("stopped by {by}, {kept} kept, {logged} logged");
    Ok(())
}
