//! The gRPC side, written by hand: two methods, so that no compiler for protocol files is needed.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};
use tokio::{sync::broadcast, time::Duration};
use tokio_stream::wrappers::BroadcastStream;
use tonic::{
    Code, Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service, http, http::uri::PathAndQuery},
    server::{Grpc, NamedService, ServerStreamingService, UnaryService},
    transport::Channel,
};
use tonic_prost::ProstCodec;

use crate::store::Store;

#[derive(Clone, PartialEq, prost::Message)]
pub struct CountRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CountReply {
    #[prost(int64, tag = "1")]
    pub notes: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WatchRequest {
    /// The number of notes to wait for before the stream ends.
    #[prost(uint32, tag = "1")]
    pub limit: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Note {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub text: String,
}

const NAME: &str = "notes.Notes";
const COUNT: &str = "/notes.Notes/Count";
const WATCH: &str = "/notes.Notes/Watch";

/// The server.
#[derive(Clone)]
pub struct Notes {
    pub store: Store,
    pub added: broadcast::Sender<Note>,
}

impl NamedService for Notes {
    const NAME: &'static str = NAME;
}

struct Count(Store);

impl UnaryService<CountRequest> for Count {
    type Response = CountReply;
    type Future = BoxFuture<Response<CountReply>, Status>;

    fn call(&mut self, _: Request<CountRequest>) -> Self::Future {
        let store = self.0.clone();
        Box::pin(async move {
            let notes = store.count().await.map_err(|why| Status::internal(why.to_string()))?;
            Ok(Response::new(CountReply { notes }))
        })
    }
}

struct Watch(broadcast::Receiver<Note>);

type Watched = Pin<Box<dyn Stream<Item = Result<Note, Status>> + Send>>;

impl ServerStreamingService<WatchRequest> for Watch {
    type Response = Note;
    type ResponseStream = Watched;
    type Future = BoxFuture<Response<Watched>, Status>;

    fn call(&mut self, request: Request<WatchRequest>) -> Self::Future {
        let limit = request.into_inner().limit as usize;
        let added = BroadcastStream::new(self.0.resubscribe());
        Box::pin(async move {
            let notes = added.map(|note| note.map_err(|why| Status::data_loss(why.to_string())));
            Ok(Response::new(Box::pin(notes.take(limit)) as Watched))
        })
    }
}

impl Service<http::Request<Body>> for Notes {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                COUNT => {
                    let mut grpc = Grpc::new(ProstCodec::default());
                    grpc.unary(Count(this.store), request).await
                }
                WATCH => {
                    let mut grpc = Grpc::new(ProstCodec::default());
                    grpc.server_streaming(Watch(this.added.subscribe()), request).await
                }
                _ => Status::new(Code::Unimplemented, "no such method").into_http(),
            })
        })
    }
}

/// The client.
pub struct Client(tonic::client::Grpc<Channel>);

impl Client {
    pub fn new(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|why| Status::unavailable(why.to_string()))
    }

    pub async fn count(&mut self, within: Duration) -> Result<i64, Status> {
        self.ready().await?;
        let mut request = Request::new(CountRequest {});
        request.set_timeout(within);
        let path = PathAndQuery::from_static(COUNT);
        let reply = self.0.unary(request, path, ProstCodec::<_, CountReply>::default()).await?;
        Ok(reply.into_inner().notes)
    }

    pub async fn watch(&mut self, limit: u32) -> Result<tonic::Streaming<Note>, Status> {
        self.ready().await?;
        let request = Request::new(WatchRequest { limit });
        let path = PathAndQuery::from_static(WATCH);
        let reply = self.0.server_streaming(request, path, ProstCodec::default()).await?;
        Ok(reply.into_inner())
    }
}
