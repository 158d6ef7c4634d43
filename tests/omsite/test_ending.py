import asyncio
import threading

from daphne.ws_protocol import WebSocketProtocol

from omsite.ending import EndingServer, end_within, refuse


def serving(**applications):
    """Return a server with connections of these names, each with its application, if any."""
    server = EndingServer(application=None, endpoints=["tcp:0"], signal_handlers=False)
    server.connections = {
        WebSocketProtocol() if name == "socket" else name: (
            {} if application is None else {"application_instance": application}
        )
        for name, application in applications.items()
    }
    return server


async def ended(server):
    await server.kill_all_applications().asFuture(asyncio.get_running_loop())


async def told(scope):
    sent = []

    async def send(message):
        sent.append(message)

    await refuse(scope, None, send)
    return sent


async def test_a_request_under_way_is_answered_before_the_end():
    answered = []

    async def answer():
        await asyncio.sleep(0)
        answered.append(True)

    await ended(serving(request=asyncio.ensure_future(answer())))

    assert answered == [True]


async def test_open_sockets_are_closed():
    socket = asyncio.ensure_future(asyncio.Event().wait())

    await ended(serving(socket=socket))

    assert socket.cancelled()


async def test_a_socket_that_ends_first_does_not_end_the_wait_for_a_request():
    may_answer = asyncio.Event()
    socket = asyncio.ensure_future(asyncio.Event().wait())
    request = asyncio.ensure_future(may_answer.wait())
    socket.add_done_callback(lambda _: may_answer.set())

    await ended(serving(socket=socket, request=request))

    assert request.result() is True


async def test_a_connection_without_an_application_keeps_nobody_from_ending():
    socket = asyncio.ensure_future(asyncio.Event().wait())

    await ended(serving(upgraded=None, socket=socket))

    assert socket.cancelled()


async def test_whoever_comes_while_the_server_ends_is_turned_away():
    server = serving()

    await ended(server)

    assert server.application is refuse
    start, body = await told({"type": "http"})
    assert start["status"] == 503
    assert body["body"] == b"The server restarts. Try again."
    assert await told({"type": "websocket"}) == [{"type": "websocket.close", "code": 1001}]


def test_what_ends_by_force_does_not_itself_keep_the_process():
    timer = end_within(60)
    try:
        assert timer in threading.enumerate()
        assert timer.daemon
    finally:
        timer.cancel()
