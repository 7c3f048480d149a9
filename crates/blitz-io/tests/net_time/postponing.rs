//! Sockets that were empty after each read so far, and then are not: what lies there is read,
//! though no event tells of it.

use blitz_io::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UdpSocket,
    runtime::Runtime,
    task,
};

use crate::{on::all_kinds, pairs, watch};

/// Long enough for a habit, however often it was broken.
const TRIPS: usize = 600;
const SIZE: usize = 64;

/// Requests of one size, one at a time, and now and then several at once: the first read fills
/// its buffer, and the rest is told by no event of its own.
async fn talk<S>(mut near: S, far: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answering = task::spawn(async move {
        let (mut far, mut request, mut count) = (far, [0; SIZE], 0);
        while far.read_exact(&mut request).await.is_ok() {
            far.write_all(&request).await.unwrap();
            count += 1;
        }
        count
    });
    let mut sent = 0;
    for trip in 0..TRIPS {
        let together = if trip % 100 == 99 { 5 } else { 1 };
        near.write_all(&vec![trip as u8; SIZE * together]).await.unwrap();
        let mut answers = vec![0; SIZE * together];
        near.read_exact(&mut answers).await.unwrap();
        assert!(answers.iter().all(|byte| *byte == trip as u8), "trip {trip}");
        sent += together;
    }
    drop(near);
    assert_eq!(answering.await.unwrap(), sent);
}

/// Runs the test as a task of each kind of runtime, alone and beside one that never lets its
/// worker sleep.
fn each<F: Future<Output = ()> + Send + 'static>(test: impl Fn() -> F) {
    let _watch = watch::begin();
    let run = |rt: &Runtime| rt.block_on(rt.spawn(test())).unwrap();
    for rt in all_kinds() {
        run(&rt);
        let busy = rt.spawn(async {
            loop {
                task::yield_now().await;
            }
        });
        run(&rt);
        busy.abort();
    }
}

#[test]
fn tcp_requests_that_come_together_are_all_answered() {
    each(|| async {
        let (near, far) = pairs::tcp().await;
        talk(near, far).await;
    });
}

#[cfg(unix)]
#[test]
fn unix_requests_that_come_together_are_all_answered() {
    each(|| async {
        let (near, far) = blitz_io::net::UnixStream::pair().unwrap();
        talk(near, far).await;
    });
}

#[test]
fn datagrams_that_come_together_are_all_received() {
    each(|| async {
        let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (to_near, to_far) = (near.local_addr().unwrap(), far.local_addr().unwrap());
        let answering = task::spawn(async move {
            let mut datagram = [0; SIZE];
            loop {
                let (count, _) = far.recv_from(&mut datagram).await.unwrap();
                if count == 0 {
                    return;
                }
                far.send_to(&datagram[..count], to_near).await.unwrap();
            }
        });
        for trip in 0..TRIPS {
            let together = if trip % 100 == 99 { 5 } else { 1 };
            for _ in 0..together {
                near.send_to(&[trip as u8; SIZE], to_far).await.unwrap();
            }
            for _ in 0..together {
                let mut answer = [0; SIZE];
                assert_eq!(near.recv_from(&mut answer).await.unwrap().0, SIZE);
                assert_eq!(answer, [trip as u8; SIZE]);
            }
        }
        near.send_to(&[], to_far).await.unwrap();
        answering.await.unwrap();
    });
}
