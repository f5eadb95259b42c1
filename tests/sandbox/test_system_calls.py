"""The seccomp profile on the real engine, call by call: all in one run, which asks the kernel by number."""

import json
from collections.abc import Callable

import pytest

from sandbox.docker_engine import SECCOMP, DockerSandbox
from sandbox.records import Run

MakeRun = Callable[..., Run]

# name: number on x86_64, number on aarch64 (None where there is no such call)
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # namespaces, mounts and roots
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # files by handle, which go past every path
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # large and young parts of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "fanotify_init": (300, 262),
    "inotify_init1": (294, 26),
    "inotify_init": (253, None),
    # what outlives a process
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # locks, which two runs could signal with on a file of the image
    "flock": (73, 32),
    # sockets, but for pairs
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "connect": (42, 203),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
NEW_NAMESPACES = {
    "CLONE_NEWNS": 0x20000,
    "CLONE_NEWCGROUP": 0x2000000,
    "CLONE_NEWUTS": 0x4000000,
    "CLONE_NEWIPC": 0x8000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}
LOCKS = {
    "F_GETLK": 5,
    "F_SETLK": 6,
    "F_SETLKW": 7,
    "F_OFD_GETLK": 36,
    "F_OFD_SETLK": 37,
    "F_OFD_SETLKW": 38,
    "F_SETLEASE": 1024,
    "F_NOTIFY": 1026,
}
FAMILIES = {
    "AF_UNIX": 1,
    "AF_INET": 2,
    "AF_INET6": 10,
    "AF_KEY": 15,
    "AF_NETLINK": 16,
    "AF_PACKET": 17,
    "AF_RDS": 21,
    "AF_CAN": 29,
    "AF_TIPC": 30,
    "AF_BLUETOOTH": 31,
    "AF_ALG": 38,
    "AF_VSOCK": 40,
    "AF_XDP": 44,
}

SOURCE = """
import ctypes, errno, os, platform, signal
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = ["x86_64", "aarch64"].index(platform.machine())
CLONE, PERSONALITY, SOCKET, SOCKETPAIR, CLONE3, FCNTL = [
    numbers[HERE] for numbers in ((56, 220), (135, 92), (41, 198), (53, 199), (435, 435), (72, 25))
]

def call(number, *arguments):
    ctypes.set_errno(0)
    result = LIBC.syscall(*map(ctypes.c_long, (number, *arguments, *[0] * (6 - len(arguments)))))
    return result, errno.errorcode.get(ctypes.get_errno(), "")

def clone(flags):
    result, name = call(CLONE, flags | signal.SIGCHLD)
    if result == 0: os._exit(0)
    if result > 0: os.waitpid(result, 0)
    return result, name

def told(calls, make, refusal="EPERM"):
    made = {name: make(argument) for name, argument in calls.items() if argument is not None}
    assert len(made) >= len(calls) // 2
    return [f"{name}: {said}" for name, said in made.items() if said != (-1, refusal)]

def test_calls():
    assert not told({name: numbers[HERE] for name, numbers in NUMBERS.items()}, call)
def test_new_namespaces():
    assert not told(NEW_NAMESPACES, clone)
def test_locks():
    with open("/etc/passwd") as file:
        assert not told(LOCKS, lambda command: call(FCNTL, file.fileno(), command, 0))
        assert call(FCNTL, file.fileno(), 3)[0] >= 0
def test_a_plain_clone_works():
    assert clone(0)[0] > 0
def test_clone3_is_said_not_to_be_there():
    assert call(CLONE3, 0, 0) == (-1, "ENOSYS")
def test_sockets():
    for kind in (1, 2, 3):
        assert not told(FAMILIES, lambda family: call(SOCKET, family, kind))
def test_pairs_of_other_families():
    pair = (ctypes.c_int * 2)()
    others = {name: family for name, family in FAMILIES.items() if name != "AF_UNIX"}
    assert not told(others, lambda family: call(SOCKETPAIR, family, 1, 0, ctypes.addressof(pair)))
    assert call(SOCKETPAIR, 1, 1, 0, ctypes.addressof(pair))[0] == 0
def test_other_personalities():
    assert not told({"ADDR_NO_RANDOMIZE": 0x40000, "PER_LINUX32": 8, "READ_IMPLIES_EXEC": 0x400000},
                    lambda persona: call(PERSONALITY, persona))
    assert call(PERSONALITY, 0xFFFFFFFF)[0] == 0
"""


@pytest.mark.docker
def test_every_call_that_has_no_use_here_is_refused(docker_sandbox: DockerSandbox, run_of: MakeRun) -> None:
    tables = f"NUMBERS = {NUMBERS}\nNEW_NAMESPACES = {NEW_NAMESPACES}\nLOCKS = {LOCKS}\nFAMILIES = {FAMILIES}\n"
    with docker_sandbox.session() as session:
        (result,) = session.run([run_of(tables + SOURCE)])
    assert result.complete, result.ending
    failed = {item.id: item.message for item in result.record.items if item.outcome.value != "passed"}
    assert len(result.record.items) == 8 and not failed, failed


def test_the_profile_allows_none_of_them_by_name() -> None:
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert not allowed & set(NUMBERS)
    assert not {
        name for name in allowed if name.startswith(("io_uring", "landlock", "process_vm", "mq_", "shm", "sem"))
    }
