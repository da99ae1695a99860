"""What runs in the sandbox: random system calls, in children that are started anew, so that a crash ends one of them alone.

Started by `run` beside it, which says what there is outside. Calls, their results and what was read are counted in memory that all
children share, and printed at the end. A choice depends on the seed alone; numbers of processes and addresses differ between runs.
"""

import ctypes
import json
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import time

NUMBERS, ERRORS = 512, 136
NO_RETURN, DONE = ERRORS - 2, ERRORS - 1
# A child that hangs in a call is ended.
CHILD_SECONDS, CALLS_OF_A_CHILD = 0.5, 400
CWD = -100
PAGES, GUARD = 32, 4 << 20
RANDOM_NUMBERS = 0.25

# x86-64. On other machines `run` does not start.
READ, WRITE, OPEN, CLOSE, STAT, LSTAT, MMAP, MPROTECT, MUNMAP, SIGACTION, SIGPROCMASK, IOCTL = 0, 1, 2, 3, 4, 6, 9, 10, 11, 13, 14, 16
PREAD, READV, ACCESS, PIPE, DUP, DUP2, SENDFILE, SOCKET, CONNECT, SENDTO, SENDMSG, BIND, LISTEN = 17, 19, 21, 22, 32, 33, 40, 41, 42, 44, 46, 49, 50
SOCKETPAIR, SETSOCKOPT, CLONE, FORK, VFORK, EXECVE, EXIT, KILL, FCNTL, FLOCK, TRUNCATE, GETDENTS, CHDIR, FCHDIR = (
    53, 54, 56, 57, 58, 59, 60, 62, 72, 73, 76, 78, 80, 81)  # fmt: skip
RENAME, MKDIR, RMDIR, CREAT, LINK, UNLINK, SYMLINK, READLINK, CHMOD, FCHMOD, CHOWN, FCHOWN, LCHOWN = 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94
PTRACE, SETPGID, SETUID, MKNOD, PERSONALITY, STATFS, SETPRIORITY, SCHED_SETPARAM, SCHED_SETSCHEDULER = 101, 109, 105, 133, 135, 137, 141, 142, 144
PRCTL, SETRLIMIT, SETXATTR, LSETXATTR, FSETXATTR, GETXATTR, LGETXATTR, LISTXATTR, REMOVEXATTR, TKILL, SCHED_SETAFFINITY = (
    157, 160, 188, 189, 190, 191, 192, 194, 197, 200, 203)  # fmt: skip
TGKILL, ADD_KEY, REQUEST_KEY, KEYCTL, IOPRIO_SET, INOTIFY_ADD, MIGRATE_PAGES, OPENAT, MKDIRAT, MKNODAT, FCHOWNAT, FUTIMESAT = (
    234, 248, 249, 250, 251, 254, 256, 257, 258, 259, 260, 261)  # fmt: skip
NEWFSTATAT, UNLINKAT, RENAMEAT, LINKAT, SYMLINKAT, READLINKAT, FCHMODAT, FACCESSAT, UNSHARE, SPLICE, VMSPLICE, UTIMENSAT = (
    262, 263, 264, 265, 266, 267, 268, 269, 272, 275, 278, 280)  # fmt: skip
FALLOCATE, PERF, PRLIMIT, NAME_TO_HANDLE, OPEN_BY_HANDLE, SENDMMSG, SETNS, VM_READ, VM_WRITE, KCMP, SCHED_SETATTR, RENAMEAT2 = (
    285, 298, 302, 303, 304, 307, 308, 310, 311, 312, 314, 316)  # fmt: skip
SECCOMP, MEMFD, BPF, EXECVEAT, USERFAULTFD, COPY_RANGE, STATX, IO_URING, SIGQUEUE, TGSIGQUEUE = 317, 319, 321, 322, 323, 326, 332, 425, 129, 297
PIDFD_SIGNAL, PIDFD_OPEN, CLONE3, OPENAT2, PIDFD_GETFD, PROCESS_MADVISE, LANDLOCK, MRELEASE, FCHMODAT2, SETXATTRAT, GETXATTRAT = (
    424, 434, 435, 437, 438, 440, 444, 448, 452, 463, 464)  # fmt: skip
LISTXATTRAT, REMOVEXATTRAT, FILE_SETATTR, STATMOUNT, LISTMOUNT = 465, 466, 469, 457, 458

BEGINNINGS = {CLONE, FORK, VFORK, CLONE3}
SIGNALS = {KILL, TKILL, TGKILL, SIGQUEUE, TGSIGQUEUE}

# What could harm the machine if the sandbox let it through, or slow it down: each is called once, with arguments that do nothing,
# and must be refused. sync and syncfs are left out: they are allowed, and would write all day.
ONCE = {
    "reboot": (169, 0, 0, 0, 0), "kexec_load": (246, 0, 0, 0, 0), "kexec_file_load": (320, -1, -1, 0, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0), "umount2": (166, 0, 0), "pivot_root": (155, 0, 0), "chroot": (161, 0), "swapon": (167, 0, 0),
    "swapoff": (168, 0), "sethostname": (170, 0, 1), "setdomainname": (171, 0, 1), "settimeofday": (164, 0, 0),
    "clock_settime": (227, 0, 0), "clock_adjtime": (305, 0, 0), "adjtimex": (159, 0), "init_module": (175, 0, 0, 0),
    "finit_module": (313, -1, 0, 0), "delete_module": (176, 0, 0), "acct": (163, 1), "syslog": (103, 3, 0, 0), "quotactl": (179, 0, 0, 0, 0),
    "quotactl_fd": (443, -1, 0, 0, 0), "vhangup": (153,), "iopl": (172, 0), "ioperm": (173, 0, 0, 0), "move_mount": (429, -1, 0, -1, 0, 0),
    "open_tree": (428, -1, 0, 0), "open_tree_attr": (467, -1, 0, 0, 0, 0), "fsopen": (430, 0, 0), "fsconfig": (431, -1, 0, 0, 0, 0),
    "fsmount": (432, -1, 0, 0), "fspick": (433, -1, 0, 0), "mount_setattr": (442, -1, 0, 0, 0, 0),
}  # fmt: skip
LEFT_OUT = {call[0] for call in ONCE.values()} | {162, 306, 161}
# Never have a result but an error, whatever their arguments.
NEVER = {
    PTRACE, VM_READ, VM_WRITE, KCMP, MIGRATE_PAGES, 279, PROCESS_MADVISE, MRELEASE, PIDFD_GETFD, SETNS, UNSHARE, BPF, PERF, USERFAULTFD,
    IO_URING, 426, 427, KEYCTL, ADD_KEY, REQUEST_KEY, 300, 253, 294, OPEN_BY_HANDLE, NAME_TO_HANDLE, FCHOWNAT, CHOWN, LCHOWN, FILE_SETATTR,
    MEMFD, 447, SPLICE, VMSPLICE, SENDFILE, 29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241, SETXATTR, LSETXATTR, FSETXATTR, REMOVEXATTR, 198, 199,
    SETXATTRAT, REMOVEXATTRAT, GETXATTR, LGETXATTR, 193, LISTXATTR, 195, 196, GETXATTRAT, LISTXATTRAT, 132, 235, FUTIMESAT, 154,
    STATMOUNT, LISTMOUNT, LISTEN, BIND, 134, CLONE3,
}  # fmt: skip
NEVER_WITHOUT_NETWORK = {SOCKET}


class World:
    """What arguments are drawn from."""

    def __init__(self, given):
        self.given = given
        self.libc = ctypes.CDLL(None, use_errno=True)
        # Nothing can be written beyond its end.
        self.memory = mmap.mmap(-1, PAGES * 4096 + GUARD)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        assert self.libc.mprotect(ctypes.c_void_p(self.at + PAGES * 4096), ctypes.c_size_t(GUARD), 0) == 0
        self.used = 0
        work, hidden, shelf, tag = (given[name] for name in ("work", "hidden", "shelf", "tag"))
        self.new = [f"{folder}/{tag}" for folder in given["folders"]]
        inside = ["a", "b", "folder", "folder/c", "out", "away", f"{work}/a", f"{work}/b", f"{work}/new", ".", "folder/.."]
        outside = [
            f"{hidden}/token", f"{hidden}/{tag}", hidden, f"{hidden}/folder", "../hidden/token", "../hidden", "..", "token",
            f"{work}/../hidden/token", "out", "away/token", f"/proc/self/cwd/../hidden/token", f"/proc/self/root{hidden}/token",
            f"{shelf}/book", shelf, f"{shelf}/{tag}", given["socket"], "",
        ]  # fmt: skip
        self.changed = [self.text(path) for path in inside + outside * 2 + self.new]
        pid, parent = given["canary"], os.getppid()
        self.launcher = parent
        system = [
            f"/proc/{who}/{name}" for who in (1, pid, parent, "self") for name in ("mem", "environ", "maps", "cmdline", "root", "cwd", "exe", "fd/0", "fd/3", "ns/net", "status")
        ]  # fmt: skip
        system += ["/proc/kcore", "/proc/net/unix", "/etc/shadow", "/proc/sys/kernel/hostname", "/dev/mem", "/dev/tty", "/dev/ptmx", "/sys", *given["setuid"]]
        self.looked_at = self.changed + [self.text(path) for path in system]
        programs = [*given["setuid"], *given["setuid"], f"{hidden}/token", f"/proc/{pid}/exe", "/bin/true", "a"]
        self.programs = [self.text(path) for path in programs]
        self.pids = [pid, parent, 0]
        self.attributes = [self.text("user.secret"), self.text("user.new"), self.text("security.capability"), self.text("system.posix_acl_access")]
        self.argv = self.bytes(struct.pack("QQQ", self.text("program"), self.text("-u"), 0))
        self.addresses = [self.address(value) for value in self.socket_addresses()]
        times = struct.pack("qqqq", 1, 0, 1, 0)
        limits = struct.pack("QQ", 1, 1)
        how = struct.pack("QQQ", 0, 0, 0)
        self.structures = [self.bytes(value) for value in (times, limits, how, struct.pack("Q", 1), struct.pack("QQ", 0xA, 7), b"\0" * 128)]
        # Buffers, behind a page for the vectors and messages that point to them.
        start = (self.used + 2 * 4095) & ~4095
        self.buffers = [self.at + start + 4096 * index for index in range(PAGES - start // 4096)]
        self.readable_from = start
        self.vectors = [self.bytes(struct.pack("QQQQ", first, 4096, second, 4096)) for first, second in zip(self.buffers, self.buffers[1:])][:4]
        self.messages = []
        for address, size in self.addresses:
            vector = self.vectors[0]
            self.messages.append(self.bytes(struct.pack("QIIQQQQiI", address, size, 0, vector, 2, 0, 0, 0, 0)))
        assert self.used < start, (self.used, start)
        self.pointers = self.buffers * 3 + self.structures + self.vectors + self.messages + [address for address, _ in self.addresses] + [0, 1, 2**64 - 1, self.at + PAGES * 4096 - 3]
        self.files = []

    def bytes(self, value):
        self.used = (self.used + 7) & ~7
        at = self.used
        self.memory[at : at + len(value)] = value
        self.used += len(value)
        return self.at + at

    def text(self, value):
        return self.bytes(value.encode() + b"\0")

    def socket_addresses(self):
        given = self.given
        unix = lambda name: struct.pack("H", socket.AF_UNIX) + name
        port = struct.pack("!H", given["port"])
        v4 = struct.pack("H", socket.AF_INET) + port + socket.inet_aton("127.0.0.1") + b"\0" * 8
        v6 = struct.pack("H", socket.AF_INET6) + port + b"\0" * 4 + socket.inet_pton(socket.AF_INET6, "::1") + b"\0" * 4
        # The proxy of the network, if it is granted.
        port = struct.pack("!H", int(os.environ.get("http_proxy", ":0").rpartition(":")[2]))
        proxy = struct.pack("H", socket.AF_INET) + port + socket.inet_aton("127.0.0.1") + b"\0" * 8
        any4 = struct.pack("H", socket.AF_INET) + b"\0" * 14
        names = [given["socket"].encode() + b"\0", given["datagrams"].encode() + b"\0", b"\0" + given["abstract"].encode(), b"\0" + given["tag"].encode()]
        return [unix(name) for name in names] + [v4, v6, proxy, any4, struct.pack("HHII", socket.AF_NETLINK, 0, 0, 0), b"\0" * 16]

    def address(self, value):
        return self.bytes(value), len(value)

    def open_files(self):
        """Descriptors of all kinds, for one child."""
        O_PATH = os.O_PATH
        given = self.given
        pairs = [end for pair in (socket.socketpair(), socket.socketpair(type=socket.SOCK_SEQPACKET)) for end in pair]
        self.kept = pairs
        kinds = [
            lambda: os.open("a", os.O_RDWR | os.O_CREAT), lambda: os.open(".", os.O_RDONLY), lambda: os.open(given["shelf"], os.O_RDONLY),
            lambda: os.open(given["shelf"] + "/book", os.O_RDONLY), lambda: os.open(given["hidden"], O_PATH), lambda: os.open(given["hidden"] + "/token", O_PATH),
            lambda: os.open("..", O_PATH), lambda: os.pidfd_open(given["canary"]), lambda: os.pidfd_open(self.launcher), lambda: select.epoll().fileno(),
            lambda: os.dup(1), lambda: os.pipe()[0], lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach(),
            lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM).detach(), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach(),
        ]  # fmt: skip
        self.files = [0, 1, 2, CWD, -1] + [end.fileno() for end in pairs] * 2
        for kind in kinds:
            try:
                self.files.append(kind())
            except OSError:
                pass


def typed(world, rng):
    """Calls with arguments of the right kinds."""
    pick = rng.choice
    bits = lambda *values: sum(value for value in values if rng.random() < 0.3)
    changed, looked = lambda: pick(world.changed), lambda: pick(world.looked_at)
    fd, buffer, pointer = lambda: pick(world.files), lambda: pick(world.buffers), lambda: pick(world.pointers)
    victim = lambda: pick(world.pids)
    # What is opened to be changed is one of ours.
    opening = lambda: (looked(), os.O_PATH if rng.random() < 0.2 else 0) if rng.random() < 0.5 else (changed(), pick((1, 2)) | bits(os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_EXCL, os.O_NOFOLLOW, os.O_DIRECTORY, 0o20000000))  # noqa: E501
    mode = lambda: pick((0, 0o600, 0o777, 0o4755, 0o6755, 0o1777))
    at = lambda: pick((0, 0x100, 0x200, 0x400, 0x1000, 0x1400))
    number = lambda: pick((0, 1, 2, 19, -1, 54321, 65534, 2**31))
    sent = lambda: pick((0, 9, 19, 10, 15))
    to = lambda: pick(world.addresses)
    pid = world.given["canary"]
    # Outside of the sandbox, minus one would be everybody.
    shot = lambda: os.getpid() if rng.random() < 0.02 else pick((pid, world.launcher))
    clone = lambda: pick((0x11, 0x11, 0x10000011, 0x8011, 0x20000011, 0x4111, 0x7E020011, 0x80000011))
    once = {
        OPEN: lambda: (*opening(), mode()), OPENAT: lambda: (fd(), *opening(), mode()), OPENAT2: lambda: (fd(), looked(), world.structures[2], 24),
        CREAT: lambda: (changed(), mode()), READ: lambda: (fd(), buffer(), 4096), PREAD: lambda: (fd(), buffer(), 4096, 0), READV: lambda: (fd(), pick(world.vectors), 2),
        WRITE: lambda: (fd(), buffer(), pick((1, 16, 4096))), GETDENTS + 139: lambda: (fd(), buffer(), 4096), GETDENTS: lambda: (fd(), buffer(), 4096),
        STAT: lambda: (looked(), buffer()), LSTAT: lambda: (looked(), buffer()), ACCESS: lambda: (looked(), 4), STATFS: lambda: (looked(), buffer()),
        NEWFSTATAT: lambda: (fd(), looked(), buffer(), at()), STATX: lambda: (fd(), looked(), at(), 0xFFF, buffer()), READLINK: lambda: (looked(), buffer(), 4096),
        READLINKAT: lambda: (fd(), looked(), buffer(), 4096), FACCESSAT: lambda: (fd(), looked(), 4), TRUNCATE: lambda: (changed(), 0), FALLOCATE: lambda: (fd(), pick((0, 3)), 0, 4096),
        RENAME: lambda: (changed(), changed()), RENAMEAT: lambda: (fd(), changed(), fd(), changed()), RENAMEAT2: lambda: (fd(), changed(), fd(), changed(), pick((0, 1, 2))),
        LINK: lambda: (changed(), changed()), LINKAT: lambda: (fd(), changed(), fd(), changed(), at()), SYMLINK: lambda: (changed(), changed()), SYMLINKAT: lambda: (changed(), fd(), changed()),
        UNLINK: lambda: (changed(),), UNLINKAT: lambda: (fd(), changed(), pick((0, 0x200))), MKDIR: lambda: (changed(), mode()), MKDIRAT: lambda: (fd(), changed(), mode()), RMDIR: lambda: (changed(),),
        MKNOD: lambda: (changed(), mode() | pick((0o100000, 0o20000, 0o60000, 0o10000, 0o140000)), 0x103), MKNODAT: lambda: (fd(), changed(), mode() | pick((0o100000, 0o20000, 0o140000)), 0x103),
        CHMOD: lambda: (changed(), mode()), FCHMOD: lambda: (fd(), mode()), FCHMODAT: lambda: (fd(), changed(), mode()), FCHMODAT2: lambda: (fd(), changed(), mode(), at()),
        CHOWN: lambda: (changed(), number(), number()), LCHOWN: lambda: (changed(), number(), number()), FCHOWN: lambda: (fd(), number(), number()), FCHOWNAT: lambda: (fd(), changed(), number(), number(), at()),
        UTIMENSAT: lambda: (fd(), pick((0, changed())), pick((0, world.structures[0])), at()), FUTIMESAT: lambda: (fd(), changed(), 0), 132: lambda: (changed(), 0), 235: lambda: (changed(), 0),
        SETXATTR: lambda: (changed(), pick(world.attributes), buffer(), 16, 0), LSETXATTR: lambda: (changed(), pick(world.attributes), buffer(), 16, 0), FSETXATTR: lambda: (fd(), pick(world.attributes), buffer(), 16, 0),
        GETXATTR: lambda: (changed(), pick(world.attributes), buffer(), 4096), LGETXATTR: lambda: (changed(), pick(world.attributes), buffer(), 4096), LISTXATTR: lambda: (changed(), buffer(), 4096),
        REMOVEXATTR: lambda: (changed(), pick(world.attributes)), FLOCK: lambda: (fd(), pick((4, 5, 6))), IOCTL: lambda: (fd(), pick(IOCTLS), pointer()),
        FCNTL: lambda: (fd(), pick((0, 3, 4, 6, 8, 10, 15, 1024, 1026, 1031, 1033)), pick((0, 1, 0x2000, pid, 0x8000003F))), SENDFILE: lambda: (fd(), fd(), 0, 4096), COPY_RANGE: lambda: (fd(), 0, fd(), 0, 4096, 0),
        SPLICE: lambda: (fd(), 0, fd(), 0, 4096, 2), DUP: lambda: (fd(),), PIPE: lambda: (buffer(),), MMAP: lambda: (0, 65536, pick((1, 3, 7)), pick((1, 2, 0x21, 0x22)), fd(), 0),
        # Sockets.
        SOCKET: lambda: (pick((1, 2, 10, 16, 17, 31, 38, 40, 43)), pick((1, 2, 3, 5)) | pick((0, 0x800)), pick((0, 6, 17, 255, 262))), SOCKETPAIR: lambda: (pick((1, 1, 2)), pick((1, 2, 3, 5)), 0, buffer()),
        CONNECT: lambda: (fd(), *to()), BIND: lambda: (fd(), *to()), LISTEN: lambda: (fd(), 5), SENDTO: lambda: (fd(), buffer(), 16, pick((0, 0x40, 0x20000040)), *to()),
        SENDMSG: lambda: (fd(), pick(world.messages), pick((0x40, 0x20000040))), SENDMMSG: lambda: (fd(), pick(world.messages), 1, 0x40), SETSOCKOPT: lambda: (fd(), pick((0, 1, 6, 41)), pick((2, 15, 16, 30, 31)), buffer(), 4),
        # Processes.
        PTRACE: lambda: (pick((0, 16, 0x4206)), victim(), 0, 0), VM_READ: lambda: (victim(), pick(world.vectors), 1, pick(world.vectors), 1, 0), VM_WRITE: lambda: (victim(), pick(world.vectors), 1, pick(world.vectors), 1, 0),
        KCMP: lambda: (victim(), victim(), 0, 0, 0), PIDFD_OPEN: lambda: (victim(), 0), PIDFD_GETFD: lambda: (fd(), pick((0, 1, 2, 3)), 0), PIDFD_SIGNAL: lambda: (fd(), sent(), 0, 0),
        KILL: lambda: (shot(), sent()), TKILL: lambda: (shot(), sent()), TGKILL: lambda: (shot(), shot(), sent()), SIGQUEUE: lambda: (shot(), sent(), buffer()), TGSIGQUEUE: lambda: (shot(), shot(), sent(), buffer()),
        SETPRIORITY: lambda: (0, victim(), 19), PRLIMIT: lambda: (victim(), pick((0, 7, 8)), pick((0, world.structures[1])), 0), SCHED_SETAFFINITY: lambda: (victim(), 8, world.structures[3]),
        SCHED_SETSCHEDULER: lambda: (victim(), pick((0, 3, 5)), buffer()), SCHED_SETPARAM: lambda: (victim(), buffer()), SCHED_SETATTR: lambda: (victim(), buffer(), 0), IOPRIO_SET: lambda: (1, victim(), 0x6000), SETPGID: lambda: (victim(), victim()),
        MIGRATE_PAGES: lambda: (victim(), 8, world.structures[3], world.structures[3]), 279: lambda: (victim(), 1, pointer(), 0, pointer(), 2), PROCESS_MADVISE: lambda: (fd(), pick(world.vectors), 1, 21, 0), MRELEASE: lambda: (fd(), 0),
        EXECVE: lambda: (pick(world.programs), world.argv, 0), EXECVEAT: lambda: (fd(), pick(world.programs), world.argv, 0, at()), FORK: lambda: (), CLONE: lambda: (clone(), 0, 0, 0, 0), CLONE3: lambda: (buffer(), 88),
        PRCTL: lambda: (pick((1, 4, 8, 22, 24, 28, 35, 38, 36, 41, 47, 59)), pick((0, 1, 2, 9)), pointer(), 0, 0), PERSONALITY: lambda: (pick((0, 8, 0x400000, 0x40000)),), SETUID: lambda: (number(),), UNSHARE: lambda: (pick((0x10000000, 0x20000, 0x7E020080)),),
        SETNS: lambda: (fd(), pick((0, 0x40000000))), SETRLIMIT: lambda: (pick((0, 1, 6, 7, 8, 9)), world.structures[1]), SECCOMP: lambda: (pick((0, 1, 2)), pick((0, 8, 16)), pointer()),
        # The kernel's large parts.
        BPF: lambda: (pick((0, 5, 18)), pointer(), 128), PERF: lambda: (pointer(), victim(), -1, -1, 0), IO_URING: lambda: (8, buffer()), USERFAULTFD: lambda: (pick((0, 1)),), KEYCTL: lambda: (pick((0, 1, 3, 11)), pick((-3, -4)), 0),
        ADD_KEY: lambda: (world.attributes[0], world.attributes[1], buffer(), 8, -3), REQUEST_KEY: lambda: (world.attributes[0], world.attributes[1], 0, -3), MEMFD: lambda: (changed(), 0), NAME_TO_HANDLE: lambda: (fd(), looked(), buffer(), buffer(), at()),
        OPEN_BY_HANDLE: lambda: (fd(), buffer(), 0), LANDLOCK: lambda: (buffer(), 16, 0), 300: lambda: (0, 0), 294: lambda: (0,), INOTIFY_ADD: lambda: (fd(), looked(), 0xFFF), 29: lambda: (0, 4096, 0o1600), 68: lambda: (0, 0o1600), 64: lambda: (0, 1, 0o1600),
        240: lambda: (changed(), 0o102, 0o600, 0), STATMOUNT: lambda: (world.structures[2], buffer(), 4096, 0), LISTMOUNT: lambda: (world.structures[2], buffer(), 64, 0), GETXATTRAT: lambda: (fd(), changed(), at(), pick(world.attributes), pointer(), 16),
        FILE_SETATTR: lambda: (fd(), changed(), pointer(), 32, at()), SETXATTRAT: lambda: (fd(), changed(), at(), pick(world.attributes), pointer(), 16), LISTXATTRAT: lambda: (fd(), changed(), at(), buffer(), 4096), CHDIR: lambda: (changed(),), FCHDIR: lambda: (fd(),),
    }  # fmt: skip
    return once


# Terminals, attributes of inodes, verity, keys of encrypted folders, attributes of FAT, folders of Btrfs, clones, and sockets.
IOCTLS = [0x5412, 0x541C, 0x540E, 0x40086602, 0x40086604, 0x401C5820, 0x80086601, 0x40806685, 0xC0506617, 0xC0406618, 0xC0406619, 0x40047211,
          0x5000940E, 0x5000940F, 0x40049409, 0xC0189436, 0x541B, 0x8901, 0x8902, 0x5421, 0xC020660B, 0xC0C89425]  # fmt: skip


def anything(world, rng):
    """An argument of any kind. No process's number: a signal takes it, and -1 is everybody."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(world.files)
    if kind == 1:
        return rng.choice(world.pointers)
    if kind == 2:
        return rng.choice(world.changed)
    if kind == 3:
        return rng.choice((0, 1, 2, 3, 8, 16, 64, 512, 4096, 0x10000, 0x80000, 1 << 20))
    return rng.choice((-1, 2**31 - 1, 2**32 - 1, 2**32, 2**63, 0x1001, world.given["canary"]))


class Counts:
    """Results by call and error, shared between processes."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 4 * (NUMBERS * ERRORS + 1 + NUMBERS))
        self.of = (ctypes.c_uint32 * (NUMBERS * ERRORS + 1 + NUMBERS)).from_buffer(self.memory)

    def note(self, number, error, by=1):
        self.of[number * ERRORS + error] += by

    def leak(self, number):
        self.of[NUMBERS * ERRORS + 1 + number] += 1

    def kept(self):
        """What is counted so far, to return to if a call has overwritten it: each call is one count, of a child and of what it began."""
        return bytes(self.memory), sum(self.of)

    def keep(self, before):
        memory, total = before
        is_right = 0 <= sum(self.of) - total <= 20 * CALLS_OF_A_CHILD
        if not is_right:
            self.memory[:] = memory
        return is_right

    def report(self):
        results = {}
        for number in range(NUMBERS):
            row = self.of[number * ERRORS : (number + 1) * ERRORS]
            found = {str(error): count for error, count in enumerate(row) if count}
            if found:
                results[number] = found
        leaks = {number: count for number in range(NUMBERS) if (count := self.of[NUMBERS * ERRORS + 1 + number])}
        return {"results": results, "leaks": leaks}


def once(world, counts):
    """Each call that could harm, with arguments that do nothing."""
    allowed = []
    for name, (number, *arguments) in ONCE.items():
        ctypes.set_errno(0)
        arguments = [ctypes.c_ulong(argument & (2**64 - 1)) for argument in arguments]
        result = world.libc.syscall(ctypes.c_long(number), *arguments)
        error = ctypes.get_errno() if result == -1 else 0
        counts.note(number, error if result == -1 else DONE)
        # Where the kernel is older than the call, or built without it, there is nothing to refuse.
        if error not in (1, 38):
            allowed.append(f"{name}: {error}")
    return allowed


def child(world, counts, seed, until):
    """Makes calls until it has made enough, or one of them ends it."""
    os.setpgid(0, 0)
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    world.open_files()
    calls = typed(world, rng)
    numbers = list(calls)
    alone = os.getpid()
    call, limit = world.libc.syscall, CALLS_OF_A_CHILD
    recent = []
    made = 0
    while made < limit and time.monotonic() < until:
        made += 1
        if rng.random() < RANDOM_NUMBERS:
            number = rng.randrange(471)
            # A signal to what is drawn at random could reach everybody.
            if number in LEFT_OUT or number in SIGNALS or number == PIDFD_SIGNAL:
                continue
            # Programs are drawn from a list alone.
            if number in (EXECVE, EXECVEAT):
                arguments = calls[number]()
            else:
                arguments = [anything(world, rng) for _ in range(6)]
        else:
            number = rng.choice(numbers)
            arguments = calls[number]()
        if number in BEGINNINGS and rng.random() < 0.8:
            continue
        # Most of these end the child: often enough.
        if number in (EXECVE, EXECVEAT, EXIT, 231, MUNMAP, VFORK, 15, SECCOMP, SETRLIMIT, SIGACTION, SIGPROCMASK, 436, 335, 128) and rng.random() < 0.9:
            continue
        counts.note(number, NO_RETURN)
        arguments = [ctypes.c_ulong(argument & (2**64 - 1)) for argument in arguments]
        ctypes.set_errno(0)
        result = call(ctypes.c_long(number), *arguments)
        error = ctypes.get_errno() if result == -1 else DONE
        if number in BEGINNINGS and os.getpid() != alone:
            # What began goes on a little, with no children of its own, and may outlive its parent.
            if rng.random() < 0.3:
                time.sleep(30)
            alone, limit = os.getpid(), min(limit, made + 20)
            numbers = [number for number in numbers if number not in BEGINNINGS]
            continue
        counts.note(number, NO_RETURN, -1)
        counts.note(number, min(error, NO_RETURN - 1) if error != DONE else DONE)
        recent.append(number)
        if error == DONE and world.memory.find(b"CANARY", world.readable_from, PAGES * 4096) >= 0:
            counts.leak(number)
            # So that the next finding is new.
            world.memory[world.readable_from : PAGES * 4096] = bytes(PAGES * 4096 - world.readable_from)
        if number in (OPEN, OPENAT, OPENAT2, SOCKET, PIDFD_OPEN, DUP) and error == DONE and len(world.files) < 60:
            world.files.append(result)
    os._exit(0)


PAGE, PIECE = 4096, 16 << 20


def mapping(libc, size, protection, flags, file=-1):
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(size), protection, flags, file, ctypes.c_long(0))
    if at in (None, 2**64 - 1):
        raise MemoryError
    return at


def hold_shared(libc, size, flags=0x21, file=-1, kept=0):
    """Memory that is written, and given up: by madvise, or by munmap of all but so many bytes."""
    for _ in range(size // PIECE):
        at = mapping(libc, PIECE, 3, flags, file)
        ctypes.memset(at, 1, PIECE)
        if kept:
            libc.munmap(ctypes.c_void_p(at + kept), ctypes.c_size_t(PIECE - kept))
        else:
            libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(PIECE), 4)


def hold_tables(libc, size):
    """A page of the tables for each 2 MiB of which one byte is read."""
    step = 2 << 20
    at = mapping(libc, size // PAGE * step, 1, 0x4022)
    libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size // PAGE * step), 15)
    for number in range(size // PAGE):
        _ = ctypes.c_char.from_address(at + number * step).value


def huge_pages(libc, size):
    """Written mappings, each with its huge pages, where the kernel makes them: MADV_COLLAPSE does whatever the system's setting is."""
    huge = 2 << 20
    for _ in range(size // PIECE):
        at = mapping(libc, PIECE + huge, 3, 0x22)
        first = -(-at // huge) * huge
        ctypes.memset(first, 1, PIECE)
        collapsed = libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(PIECE), 25) == 0
        yield [(page, huge) for page in range(first, first + PIECE, huge)], collapsed


def hold_in_pipes(libc, size):
    """A small page of each huge one in a pipe, and nothing mapped."""
    for pages, _ in huge_pages(libc, size):
        _, write = os.pipe()
        for page, huge in pages:
            vector = (ctypes.c_size_t * 2)(page, PAGE)
            if libc.vmsplice(write, vector, ctypes.c_size_t(1), 0) != PAGE:
                raise OSError(ctypes.get_errno(), "vmsplice")
            libc.munmap(ctypes.c_void_p(page), ctypes.c_size_t(huge))


def hold_small_part(libc, size):
    """A small page of each huge one, which keeps that whole."""
    for pages, collapsed in huge_pages(libc, size):
        if not collapsed:
            raise MemoryError("no huge pages")
        for page, huge in pages:
            libc.munmap(ctypes.c_void_p(page + PAGE), ctypes.c_size_t(huge - PAGE))


def hold_files(_libc, size):
    """A byte of each 2 MiB of files in sockets, where it keeps as much as was written at once."""
    huge = 2 << 20
    for _ in range(size // (2 * huge)):
        file = os.open("held", os.O_RDWR | os.O_CREAT)
        end, _other = (end.detach() for end in socket.socketpair())
        for at in (0, huge):
            os.write(file, bytes(huge))
            os.sendfile(end, file, at, 1)
        os.ftruncate(file, 0)
        os.close(file)


def hold_buffers(libc, size):
    """What waits in sockets: of several processes, each with as many as it can have."""
    while size > 0:
        ready, filled = os.pipe()
        if os.fork() == 0:
            ends, held = [], 0
            while len(ends) < 960 and held < size:
                ends += socket.socketpair()
                for end in ends[-2:]:
                    end.setblocking(False)
                    try:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
                    except PermissionError:
                        pass
                    try:
                        while True:
                            held += end.send(bytes(32768))
                    except BlockingIOError:
                        pass
            os.write(filled, struct.pack("Q", held))
            time.sleep(60)
            os._exit(0)
        size -= struct.unpack("Q", os.read(ready, 8))[0]
        os.close(ready)
        os.close(filled)


# Ways to hold memory that is not among a process's own pages.
HOLDS = {
    "shared memory": hold_shared,
    "a part of shared memory": lambda libc, size: hold_shared(libc, size, kept=PAGE),
    "/dev/zero": lambda libc, size: hold_shared(libc, size, 1, os.open("/dev/zero", os.O_RDWR)),
    "page tables": hold_tables,
    "buffers of sockets": hold_buffers,
    "huge pages in pipes": hold_in_pipes,
    "a part of huge pages": hold_small_part,
    "files in sockets": hold_files,
}


def hold(given):
    """Says so if that much could be held, and for some readings of the launcher's."""
    try:
        HOLDS[given["hold"]](ctypes.CDLL(None), given["bytes"])
        time.sleep(1)
        print("HELD", flush=True)
    except (MemoryError, OSError) as error:
        print("refused:", repr(error), flush=True)
    os._exit(0)


def main():
    given = json.loads(sys.argv[1])
    if given["hold"]:
        hold(given)
    counts = Counts()
    world = World(given)
    out = os.dup(1)
    allowed = once(world, counts)
    if not given["weakened"]:
        try:
            os.open(given["hidden"] + "/token", os.O_RDWR)
            allowed.append("the token can be opened")
        except OSError:
            pass
    begun, spoilt, ended_by, told = 0, 0, {}, 0.0

    def tell():
        report = counts.report() | {"children": begun, "spoilt": spoilt, "ended": ended_by, "allowed": allowed}
        os.write(out, b"\nREPORT " + json.dumps(report).encode() + b"\n")

    if allowed:
        # Nothing is tried at random where the sandbox does not hold.
        given["children"] = 0
    late = time.monotonic() + given["seconds"]
    while time.monotonic() < late and begun < given["children"]:
        for name, make in (("folder", os.mkdir), ("out", lambda path: os.symlink(given["hidden"] + "/token", path)), ("away", lambda path: os.symlink(given["hidden"], path))):
            try:
                if not os.path.lexists(name):
                    make(name)
            except OSError:
                # A child has closed the folder.
                os.chmod(given["work"], 0o700)
        until, before = time.monotonic() + CHILD_SECONDS, counts.kept()
        try:
            pid = os.fork()
        except BlockingIOError:
            # What the children left behind fills the kernel's limit. The next round begins without it.
            break
        if pid == 0:
            try:
                child(world, counts, f"{given['seed']}:{begun}", until)
            finally:
                os._exit(1)
        begun += 1
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > until + 0.1:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        spoilt += not counts.keep(before)
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        ended_by[how] = ended_by.get(how, 0) + 1
        # The launcher ends the round once the children have left too many processes behind.
        if time.monotonic() > told + 0.5:
            tell()
            told = time.monotonic()
    tell()
    os._exit(0)


if __name__ == "__main__":
    main()
