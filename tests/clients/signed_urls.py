"""Checks the signatures in URLs as Amazon does, with botocore's own arithmetic, and passes the requests on to moto's server, signed in
their headers: those are all that moto checks."""

import http.client
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

WRONG = b"<?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message></Error>"
SIGNATURE = "X-Amz-Signature"
# Of this connection alone, or made anew.
OWN = {"connection", "content-length", "date", "host", "server", "transfer-encoding"}


def is_signed(credentials, method, url, headers):
    """Whether the URL has the signature that these credentials give it."""
    address, _, query = url.partition("?")
    fields = urllib.parse.parse_qsl(query, keep_blank_values=True)
    named = dict(fields)
    signed = named.get("X-Amz-SignedHeaders", "").split(";")
    unsigned = "&".join(part for part in query.split("&") if not part.startswith(f"{SIGNATURE}="))
    request = AWSRequest(method, f"{address}?{unsigned}", headers={name: headers[name] for name in signed if name in headers})
    request.context["timestamp"] = named.get("X-Amz-Date", "")
    region = named["X-Amz-Credential"].split("/")[2]
    auth = S3SigV4QueryAuth(credentials, "s3", region)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request) == named.get(SIGNATURE)


class SignedUrls:
    """A server on this machine, before the one at `address`."""

    def __init__(self, address, access_key, secret):
        credentials = Credentials(access_key, secret)
        upstream = urllib.parse.urlsplit(address)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                url = f"http://{self.headers['host']}{self.path}"
                if not is_signed(credentials, self.command, url, self.headers):
                    return self.answer(403, {"content-type": "application/xml"}, WRONG)
                path, _, query = self.path.partition("?")
                kept = "&".join(part for part in query.split("&") if part and not part.startswith("X-Amz-"))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
                request = AWSRequest(self.command, f"{address}{path}" + (f"?{kept}" if kept else ""), headers=headers, data=body)
                S3SigV4Auth(credentials, "s3", "us-east-1").add_auth(request)
                connection = http.client.HTTPConnection(upstream.hostname, upstream.port)
                connection.request(self.command, path + (f"?{kept}" if kept else ""), body, dict(request.headers.items()))
                response = connection.getresponse()
                content = response.read()
                answered = {name: value for name, value in response.getheaders() if name.lower() not in OWN}
                if self.command == "HEAD":
                    answered["content-length"] = response.getheader("content-length") or "0"
                self.answer(response.status, answered, content)
                connection.close()

            def answer(self, status, headers, content):
                try:
                    self.write(status, headers, content)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def write(self, status, headers, content):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if self.command != "HEAD":
                    self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_DELETE = do_GET = do_HEAD = do_PUT = pass_on

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
