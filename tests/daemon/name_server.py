"""A name server over UDP whose answers a test decides."""

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import trio

SERVFAIL = dns.rcode.SERVFAIL
NXDOMAIN = dns.rcode.NXDOMAIN


class NameServer:
    """Answers names with 127.0.0.1, or as `policy` says.

    Attributes:
        port: UDP port on 127.0.0.1.
        policy: called with a name; returns seconds to wait before the address, a response code, or
            None to drop the query.
        names: queried names, each once, in order.
        most_at_once: most names that waited for their answer at a time.
    """

    def __init__(self, policy):
        self.policy = policy
        self.names = {}
        self.most_at_once = 0
        self._at_once = set()

    async def serve(self, task_status):
        """Serve until cancelled."""
        with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as udp:
            await udp.bind(("127.0.0.1", 0))
            self.port = udp.getsockname()[1]
            async with trio.open_nursery() as nursery:
                task_status.started(self)
                while True:
                    query, peer = await udp.recvfrom(4096)
                    nursery.start_soon(self._answer, udp, query, peer)

    async def _answer(self, udp, query, peer):
        message = dns.message.from_wire(query)
        question = message.question[0]
        name = question.name.to_text(omit_final_dot=True)
        self.names[name] = None
        decision = self.policy(name)
        if decision is None:
            return
        response = dns.message.make_response(message)
        response.flags |= dns.flags.RA
        if isinstance(decision, dns.rcode.Rcode):
            response.set_rcode(decision)
        else:
            self._at_once.add(name)
            self.most_at_once = max(self.most_at_once, len(self._at_once))
            await trio.sleep(decision)
            self._at_once.discard(name)
            if question.rdtype == dns.rdatatype.A:
                answer = dns.rrset.from_text(question.name, 300, "IN", "A", "127.0.0.1")
                response.answer.append(answer)
        await udp.sendto(response.to_wire(), peer)
