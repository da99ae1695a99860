"""Saved contexts in a bucket of a real S3 server, before which each signature is checked as Amazon does."""

import json
import os
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request

import boto3
from host import CONFIG, HANG_SECONDS, Host
from signed_urls import SignedUrls

BUCKET = "tierbar-contexts"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
# The user, its policy, its key and the bucket; from then on the server checks credentials.
UNCHECKED = "4"


class Server:
    """moto's server, with one user and one bucket."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": UNCHECKED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = []
        while line := self.process.stdout.readline():
            lines.append(line)
            if "Running on" in line:
                break
        else:
            raise RuntimeError("the S3 server did not start: " + "".join(lines))
        self.url = line.split()[-1]
        # What it says of each request would fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        iam = self.client("iam", "first", "first")
        iam.create_user(UserName="tierbar")
        iam.put_user_policy(UserName="tierbar", PolicyName="s3", PolicyDocument=json.dumps(POLICY))
        key = iam.create_access_key(UserName="tierbar")["AccessKey"]
        self.access_key, self.secret = key["AccessKeyId"], key["SecretAccessKey"]
        self.client("s3", "first", "first").create_bucket(Bucket=BUCKET)
        self.s3 = self.client("s3", self.access_key, self.secret)
        self.checked = SignedUrls(self.url, self.access_key, self.secret)

    def client(self, service, access_key, secret):
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=access_key,
            aws_secret_access_key=secret,
        )

    def stop(self):
        self.checked.stop()
        self.process.kill()
        self.process.wait(HANG_SECONDS)


class Store(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        store = {
            "store": f"s3://{BUCKET}/my contexts",
            "endpoint": cls.server.checked.url,
            "access_key": cls.server.access_key,
        }
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in store.items())
        cls.host = Host(f"{CONFIG}[contexts]\n{lines}\n", TIERBAR_SECRETS="file")
        cls.addClassCleanup(cls.host.stop)
        cls.set_secret("context-passphrase", "correct horse battery staple")

    def setUp(self):
        self.set_secret("context-store", self.server.secret)

    @classmethod
    def ask(cls, method, path, body=None):
        """The status and the JSON of an answer."""
        request = urllib.request.Request(
            f"{cls.host.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {cls.host.token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:
                return response.status, json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    @classmethod
    def set_secret(cls, name, value):
        status, answer = cls.ask("PUT", f"/tierbar/v1/secrets/{name}", {"value": value})
        assert status == 204, answer

    def post(self, action, name="numbers", **fields):
        return self.ask("POST", f"/v1/context/{action}", {"name": name, **fields})

    def object(self):
        """The key of the one context in the bucket."""
        listed = self.server.s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        keys = [entry["Key"] for entry in listed]
        self.assertTrue(all(key.startswith("my contexts/") for key in keys), keys)
        (key,) = [key for key in keys if key.endswith(".tierbar")]
        return key

    def test_a_context_goes_there_and_comes_back(self):
        prompt = ", ".join(str(number) for number in range(60))
        status, saved = self.post("save", prompt=prompt, model="fast")
        self.assertEqual(status, 200, saved)
        self.assertLess(saved["bytes"], saved["raw_bytes"])
        status, uploaded = self.post("upload")
        self.assertEqual(status, 200, uploaded)
        self.assertEqual(self.post("delete")[0], 200)
        _, listed = self.ask("GET", "/v1/context/store")
        self.assertEqual(listed["data"], [uploaded])
        whole = self.server.s3.get_object(Bucket=BUCKET, Key=self.object())["Body"].read()
        self.assertNotIn(b"numbers", whole)

        # What the server makes of it meanwhile is refused, and leaves nothing here.
        middle = len(whole) // 2
        for changed in (
            whole[:-1],
            whole + b"\0",
            whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            b"",
            b"<html>Please sign in.</html>" * 200,
        ):
            self.server.s3.put_object(Bucket=BUCKET, Key=self.object(), Body=changed)
            status, refused = self.post("download")
            self.assertEqual((status, refused["error"]["code"]), (502, "corrupt"), refused)
            self.assertEqual(self.ask("GET", "/v1/context")[1]["data"], [])
        self.server.s3.put_object(Bucket=BUCKET, Key=self.object(), Body=whole)

        status, downloaded = self.post("download")
        self.assertEqual((status, downloaded), (200, uploaded))
        status, loaded = self.post("load")
        self.assertEqual(status, 200, loaded)
        self.assertEqual(loaded["timings"]["cache_n"], saved["tokens"])
        self.assertEqual(self.post("delete", store=True)[0], 200)
        self.assertEqual(self.post("download")[0], 404)

    def test_a_wrong_secret_is_refused_by_the_server(self):
        self.set_secret("context-store", "wrong")
        status, refused = self.ask("GET", "/v1/context/store")
        self.assertEqual((status, refused["error"]["code"]), (403, "access_denied"), refused)
        self.assertIn("SignatureDoesNotMatch", refused["error"]["message"])


if __name__ == "__main__":
    unittest.main()
