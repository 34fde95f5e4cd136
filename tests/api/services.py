# SPDX-License-Identifier: GPL-3.0-or-later
"""Chat, pager and alert services as they behave: they refuse what is over their documented limits or badly
signed, some with status 200 and a code in the body, and a text that was cut inside a character.

A service has `accepted`, the bodies that it took, and `faults`, why it refused others. It answers its next
`troubles` requests with a failure that passes, and while `refuses` is set all with one that does not.
"""
import base64
import hashlib
import hmac
import http.server
import json
import re
import threading
import time
import urllib.parse

KEY = "0123456789abcdef0123456789abcdef"
HOOK_KEY = b"a key for the tests of webhooks!"


class Fault(Exception):
    """The answer of a service that does not take a request: status, body, headers."""

    def __init__(self, why, status, body, **headers):
        super().__init__(why)
        self.answer = (status, body, headers)


def units(text):
    """What JavaScript counts."""
    return len(text.encode("utf-16-le")) // 2


def hmac_base64(key, text):
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def feishu_sign(timestamp, secret):
    return hmac_base64(f"{timestamp}\n{secret}".encode(), b"")


def dingtalk_sign(timestamp, secret):
    return hmac_base64(secret.encode(), f"{timestamp}\n{secret}".encode())


# Published algorithms, computed with openssl dgst.
assert feishu_sign(1700000000, "test") == "eSJQnOl8XqPTMPHWz9e5IzeHS/tqoc68g2967ekIPmg="
assert dingtalk_sign(1700000000000, "SECtest") == "aZLLrriXgn05YbwaGR7knYsLeJADjr9NwLaNNKpxh4g="


class Service:
    kind = path = ""
    taken = (200, "")
    trouble = (503, "")
    refusal = (400, "")
    secret = None

    def __init__(self):
        self.accepted, self.faults, self.requests = [], [], 0
        self.troubles, self.refuses, self.is_away = 0, False, False

    def check(self, request, body):
        """Raises Fault."""

    def answer(self, request, raw):
        self.requests += 1
        if self.is_away:
            return 503, "", {}
        if self.troubles:
            self.troubles -= 1
            return (*self.trouble, {}) if len(self.trouble) == 2 else self.trouble
        if self.refuses:
            return (*self.refusal, {})
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Fault("a text cut inside a character", *self.refusal) from None
        try:
            body = json.loads(text)
        except ValueError:
            raise Fault("no JSON", *self.refusal) from None
        self.check(request, body)
        self.accepted.append(body)
        return (*self.taken, {})

    def need(self, condition, why):
        if not condition:
            raise Fault(why, *self.refusal)


class Webhook(Service):
    kind, path, taken, trouble = "webhook", "/hook", (204, ""), (500, "")
    secret = "whsec_" + base64.b64encode(HOOK_KEY).decode()

    def answer(self, request, raw):
        identity, stamp = request.headers["webhook-id"], request.headers["webhook-timestamp"]
        want = "v1," + hmac_base64(HOOK_KEY, f"{identity}.{stamp}.".encode() + raw)
        self.need(request.headers["webhook-signature"] == want, "signature")
        return super().answer(request, raw)


class Alertmanager(Service):
    kind, path = "alertmanager", "/am/api/v2/alerts"

    def check(self, request, body):
        self.need(isinstance(body, list) and 0 < len(body) <= 64 * 3, "a list")
        for alert in body:
            self.need(alert["labels"] and all(alert["labels"].values()), "empty labels")
            self.need(all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name)
                          for part in ("labels", "annotations") for name in alert[part]), "names")
            self.need(alert["startsAt"] <= alert["endsAt"], "start time must be before end time")


class Slack(Service):
    kind, path, taken = "slack", "/slack", (200, "ok")
    trouble, refusal = (200, "<html>a proxy</html>"), (400, "invalid_blocks")

    def text(self, one, most):
        self.need(one["type"] in ("plain_text", "mrkdwn") and 0 < units(one["text"]) <= most, f"text over {most}")
        if one["type"] == "mrkdwn":
            rest = re.sub(r"<https?://[^<>|]*\|[A-Za-z]+>", "", one["text"])
            self.need("<" not in rest and ">" not in rest, "markup in a name")
            self.need(re.fullmatch(r"([^&]|&amp;|&lt;|&gt;)*", rest, re.DOTALL), "a cut escape")
        return units(one["text"])

    def check(self, request, body):
        self.need(set(body) <= {"text", "blocks"} and len(body["blocks"]) <= 50, "members")
        total = 0
        for block in body["blocks"]:
            if block["type"] == "header":
                self.need(block["text"]["type"] == "plain_text", "header")
                total += self.text(block["text"], 150)
            else:
                self.need(block["type"] == "section", "block")
                total += self.text(block["text"], 3000) if "text" in block else 0
                self.need(len(block.get("fields", [])) <= 10, "fields")
                total += sum(self.text(field, 2000) for field in block.get("fields", []))
        if total > 12000:
            raise Fault("too long", 400, "msg_blocks_too_long")


class Feishu(Service):
    kind, path, taken = "feishu", "/feishu", (200, '{"code":0,"data":{},"msg":"success"}')
    trouble, refusal = (502, "bad gateway"), (200, '{"code":9499,"msg":"Bad Request","data":{}}')
    secret = "s3cret of Feishu"

    def check(self, request, body):
        now = time.time()
        if body.get("sign") != feishu_sign(body["timestamp"], self.secret) or abs(now - int(body["timestamp"])) > 3600:
            raise Fault("sign", 200, '{"code":19021,"msg":"sign match fail or timestamp is not within one hour"}')
        self.need(int(request.headers["Content-Length"]) <= 20000, "over 20 KB")
        card = body["card"]
        self.need(body["msg_type"] == "interactive" and set(card) == {"schema", "header", "body"}, "unknown keys")
        self.need(card["schema"] == "2.0" and card["header"]["title"]["tag"] == "plain_text", "card")
        (element,) = card["body"]["elements"]
        text = re.sub(r"\[Details\]\(https?://[^()]*\)|\*\*[A-Z][a-z]+\*\*", "", element["content"])
        self.need(element["tag"] == "markdown" and not set("<>*_~`[]()!\\") & set(text), "markup in a name")
        self.need(re.fullmatch(r"([^&]|&#[0-9]+;)*", text, re.DOTALL), "a cut escape")


class Limited(Service):
    """20 messages a minute."""
    limited = {}

    def check_rate(self, code):
        self.times = [t for t in getattr(self, "times", []) if t > time.time() - 60] + [time.time()]
        if len(self.times) > 20:
            raise Fault("over 20 a minute", 200, json.dumps({"errcode": code, "errmsg": "too fast"}))

    def check_markdown(self, text):
        rest = re.sub(r'\[Details\]\(https?://[^()]*\)|\*\*[A-Z][a-z]+\*\*|^#+ |<font color="[a-z]+">|</font>', "", text)
        self.need(not set("<>*`[]!@\\") & set(rest), "markup in a name")


class Dingtalk(Limited):
    kind, path, taken = "dingtalk", "/robot/send", (200, '{"errcode":0,"errmsg":"ok"}')
    trouble = (200, '{"errcode":-1,"errmsg":"system busy"}')
    refusal = (200, '{"errcode":400402,"errmsg":"bad request"}')
    secret = "SEC of DingTalk"

    def check(self, request, body):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query, strict_parsing=True)
        stamp = query["timestamp"][0]
        if query["sign"] != [dingtalk_sign(stamp, self.secret)] or abs(time.time() * 1000 - int(stamp)) > 3600000:
            raise Fault("sign", 200, '{"errcode":310000,"errmsg":"sign not match"}')
        self.need(query["access_token"] == ["t0ken"], "token is not exist")
        self.check_rate(130101)
        self.need(int(request.headers["Content-Length"]) <= 20000, "over 20 KB")
        self.need(body["msgtype"] == "markdown" and body["at"] == {"atMobiles": [], "isAtAll": False}, "members")
        self.need(body["markdown"]["title"], "title")
        self.check_markdown(body["markdown"]["text"])


class Wecom(Limited):
    kind, path, taken = "wecom", "/cgi-bin/webhook/send", (200, '{"errcode":0,"errmsg":"ok"}')
    trouble = (200, '{"errcode":-1,"errmsg":"system busy"}')
    refusal = (200, '{"errcode":93000,"errmsg":"invalid webhook url"}')

    def check(self, request, body):
        self.need(request.path.endswith("?key=t0ken"), "key")
        self.check_rate(45009)
        if len(body["markdown"]["content"].encode()) > 4096:
            raise Fault("over 4096 bytes", 200,
                        '{"errcode":40058,"errmsg":"markdown.content exceed max length 4096. invalid Request Parameter"}')
        self.check_markdown(body["markdown"]["content"])


class Teams(Service):
    kind, path, taken = "teams", "/powerautomate/invoke", (202, "")
    trouble = (200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429")

    def check(self, request, body):
        if 2 * units(json.dumps(body, ensure_ascii=False)) > 28 << 10:
            raise Fault("over 28 KB", 413, "")
        (attachment,) = body["attachments"]
        card = attachment["content"]
        self.need(body["type"] == "message" and attachment["contentUrl"] is None, "message")
        self.need(attachment["contentType"] == "application/vnd.microsoft.card.adaptive", "type")
        self.need(card["type"] == "AdaptiveCard" and card["version"] == "1.2" and card["body"], "card")
        for block in card["body"]:
            self.need(block["type"] == "RichTextBlock" and
                      all(run["type"] == "TextRun" and run["text"] for run in block["inlines"]), "block")


class Pagerduty(Service):
    kind, path, secret = "pagerduty", "/v2/enqueue", KEY
    taken = (202, '{"status":"success","message":"Event processed"}')
    trouble = (429, "", {"Retry-After": "1"})
    refusal = (400, '{"status":"invalid event","message":"Event object is invalid","errors":["bad"]}')

    def check(self, request, body):
        self.need(int(request.headers["Content-Length"]) <= 512000, "over 512 KB")
        self.need(body["routing_key"] == KEY and len(body["dedup_key"]) <= 255, "keys")
        if body["event_action"] == "resolve":
            return
        payload = body["payload"]
        self.need(body["event_action"] == "trigger" and payload["source"], "event")
        self.need(0 < units(payload["summary"]) <= 1024, "summary over 1024")
        self.need(payload["severity"] in ("critical", "error", "warning", "info"), "severity")


class Opsgenie(Service):
    kind, path, secret = "opsgenie", "/v2/alerts", KEY
    taken = (202, '{"result":"Request will be processed","took":0.1,"requestId":"43a29c5c"}')
    trouble = (429, "{}", {"X-OGW-RateLimit-Reset": "1"})
    refusal = (422, '{"message":"Request body is not processable","took":0.0}')

    def check(self, request, body):
        if request.headers["Authorization"] != f"GenieKey {KEY}":
            raise Fault("key", 401, '{"message":"Key format is not valid!"}')
        if "/close?" in request.path:
            self.need(request.path.endswith("/close?identifierType=alias"), "close")
            body["close"] = request.path.split("/")[-2]
            return
        self.need(0 < units(body["message"]) <= 130 and units(body["alias"]) <= 512, "message over 130")
        self.need(units(body["description"]) <= 15000 and units(body.get("entity", "")) <= 512, "description")
        self.need(body["priority"] in ("P1", "P2", "P3", "P4", "P5"), "priority")
        self.need(len(body["tags"]) <= 20 and all(0 < units(tag) <= 50 for tag in body["tags"]), "tags")
        self.need(sum(units(k) + units(v) for k, v in body["details"].items()) <= 8000, "details")


class Services:
    """All of them on one port of the loopback address."""

    def __init__(self):
        self.all = {one.kind: one for one in (kind() for kind in (
            Webhook, Alertmanager, Slack, Feishu, Dingtalk, Wecom, Teams, Pagerduty, Opsgenie))}
        services = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                with services.lock:
                    status, body, headers = services.take(self, raw)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a sender that was killed
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, request, raw):
        for one in self.all.values():
            if request.path.startswith(one.path):
                try:
                    return one.answer(request, raw)
                except Fault as fault:
                    one.faults.append(f"{fault}: {raw[:300]!r}")
                    return fault.answer
                except (KeyError, TypeError, ValueError) as error:
                    one.faults.append(f"{error!r}: {raw[:300]!r}")
                    return (*one.refusal, {})
        return 404, "", {}

    def url(self, kind):
        more = {"dingtalk": "?access_token=t0ken", "wecom": "?key=t0ken"}
        path = "/am" if kind == "alertmanager" else self.all[kind].path
        return self.base + path + more.get(kind, "")

    def each(self, name, value):
        with self.lock:
            for one in self.all.values():
                setattr(one, name, value)
