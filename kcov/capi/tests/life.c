/*
 * The life of a device, with each error that a test can cause. Runs in a guest, as root. FIRST or
 * LAST includes the system's header too, and FIRST compares the numbers of both.
 */
#if defined(FIRST) && defined(__linux__)
#include <linux/ioctl.h>
#include <linux/kcov.h>
#elif defined(FIRST)
#include <sys/kcov.h>
#endif
#include "../kcov.h"
#include "ktap.h"
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#if defined(LAST) && defined(__linux__)
#include <linux/ioctl.h>
#include <linux/kcov.h>
#elif defined(LAST)
#include <sys/kcov.h>
#endif

#define CHECK(name, is) typedef char check_##name[(is) ? 1 : -1]

#if defined(__linux__)
CHECK(mode, offsetof(struct kcov_remote, mode) == 0);
CHECK(area, offsetof(struct kcov_remote, area) == 4);
CHECK(count, offsetof(struct kcov_remote, count) == 8);
CHECK(common, offsetof(struct kcov_remote, common) == 16);
CHECK(handles, offsetof(struct kcov_remote, handles) == 24);
#endif
#if defined(FIRST) && defined(__linux__)
CHECK(init, (sizeof(long) == 8 ? KCOV_LINUX_INIT_TRACE64 : KCOV_LINUX_INIT_TRACE32) == KCOV_INIT_TRACE);
CHECK(enable, KCOV_LINUX_ENABLE == KCOV_ENABLE);
CHECK(disable, KCOV_LINUX_DISABLE == KCOV_DISABLE);
CHECK(remote, KCOV_LINUX_REMOTE_ENABLE == KCOV_REMOTE_ENABLE);
CHECK(modes, (int)KCOV_PC == (int)KCOV_TRACE_PC && (int)KCOV_CMP == (int)KCOV_TRACE_CMP);
CHECK(usb, KCOV_LINUX_SUBSYSTEM_USB == KCOV_SUBSYSTEM_USB);
CHECK(most, KCOV_LINUX_MAX_HANDLES == KCOV_REMOTE_MAX_HANDLES);
#elif defined(FIRST)
CHECK(init, KCOV_NETBSD_SETBUFSIZE == KCOV_IOC_SETBUFSIZE);
CHECK(enable, KCOV_NETBSD_ENABLE == KCOV_IOC_ENABLE);
CHECK(disable, KCOV_NETBSD_DISABLE == KCOV_IOC_DISABLE);
CHECK(attach, KCOV_NETBSD_REMOTE_ATTACH == KCOV_IOC_REMOTE_ATTACH);
CHECK(detach, KCOV_NETBSD_REMOTE_DETACH == KCOV_IOC_REMOTE_DETACH);
CHECK(modes, KCOV_PC == KCOV_MODE_TRACE_PC && KCOV_CMP == KCOV_MODE_TRACE_CMP);
#endif
#if defined(KCOV_LOAD) || defined(KCOV_ACQUIRE)
#error "a macro leaks"
#endif

/* A system call that the kernel refuses, recorded in each mode. */
static void call(void)
{
	char byte;

	if (read(-1, &byte, 1) >= 0)
		abort();
}

/* Whether this was the last failure, and the message says so. */
static int failed(const struct kcov *k, enum kcov_kind kind, int error, const char *said)
{
	char text[KCOV_MESSAGE_MAX];

	kcov_message(k, text, sizeof(text));
	if (k->kind == kind && k->error == error && strstr(text, said))
		return 1;
	printf("# kind %d, errno %d: %s\n", (int)k->kind, k->error, text);
	return 0;
}

static struct kcov opened(size_t words)
{
	struct kcov k;
	char text[KCOV_MESSAGE_MAX];

	if (kcov_open(&k, NULL, words)) {
		printf("Bail out! %s\n", kcov_message(&k, text, sizeof(text)));
		exit(1);
	}
	return k;
}

static int open_says_why_not(void)
{
	struct kcov k;
	struct rlimit old, none = {0, 0};
	int ok, status;
	pid_t child;

	ok = kcov_open(&k, "/dev/null", 0) == KCOV_NOT_KCOV && k.fd < 0 &&
	     failed(&k, KCOV_NOT_KCOV, 0, "cannot open the kcov device: not a kcov device; check");
	/* A file that could take a number for a pointer gets no request. */
	close(open("/tmp/not-kcov", O_RDWR | O_CREAT, 0600));
	ok &= kcov_open(&k, "/tmp/not-kcov", 0) == KCOV_NOT_KCOV && k.operation == KCOV_OP_OPEN;
#if defined(__linux__)
	ok &= kcov_open(&k, "/none/kcov", 0) == KCOV_DEBUGFS_NOT_MOUNTED;
	ok &= failed(&k, KCOV_DEBUGFS_NOT_MOUNTED, ENOENT, "mount -t debugfs");
	ok &= kcov_open(&k, "kcov.none", 0) == KCOV_DEBUGFS_NOT_MOUNTED;
	ok &= kcov_open(&k, "/sys/kernel/debug/none", 0) == KCOV_NOT_BUILT_IN;
	ok &= failed(&k, KCOV_NOT_BUILT_IN, ENOENT, "CONFIG_KCOV=y");
	ok &= kcov_open(&k, "/sys/kernel/debug", 0) != KCOV_OK;
#endif
	none.rlim_max = getrlimit(RLIMIT_NOFILE, &old) ? 0 : old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	ok &= kcov_open(&k, NULL, 0) == KCOV_DESCRIPTOR_OUT_OF_LIMITS;
	setrlimit(RLIMIT_NOFILE, &old);
	child = fork();
	if (!child) {
		if (setuid(65534))
			_exit(1);
		/* NetBSD's node may have any mode. */
		if (!access(KCOV_PATH, R_OK | W_OK))
			_exit(kcov_open(&k, NULL, 0) != KCOV_OK);
		if (kcov_open(&k, NULL, 0) != KCOV_PERMISSION_DENIED)
			_exit(1);
		_exit(!failed(&k, KCOV_PERMISSION_DENIED, EACCES, "run as root"));
	}
	kcov_close(&k); /* of a device that is not open */
	return waitpid(child, &status, 0) == child && !status && ok;
}

static int sizes(void)
{
	struct kcov k;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ok;

	ok = kcov_open(&k, NULL, (size_t)-1) == KCOV_SIZE_OUT_OF_LIMITS && k.fd < 0;
	ok &= failed(&k, KCOV_SIZE_OUT_OF_LIMITS, 0, "the size is out of limits");
	kcov_open_file(&k, NULL);
	if (kcov_set_size(&k, 1) == KCOV_NOT_KCOV) {
		k.width = 4; /* this kernel's words are narrower */
		kcov_set_size(&k, 1);
	}
	ok &= failed(&k, KCOV_SIZE_OUT_OF_LIMITS, EINVAL, "kcov_max_words()");
	ok &= kcov_map(&k) != KCOV_OK && !k.buffer && !kcov_read(&k).length;
	ok &= !kcov_set_size(&k, page / k.width);
	ok &= kcov_set_size(&k, page / k.width) == KCOV_OTHER; /* it has a size */
	ok &= !kcov_map(&k) && k.words == page / k.width;
	kcov_close(&k);
	k = opened(1);
	ok &= k.words * k.width == page;
	kcov_close(&k);
	k = opened(0);
	ok &= k.words == KCOV_DEFAULT_WORDS;
	kcov_close(&k);
	return ok;
}

static int a_call_is_traced(void)
{
	struct kcov k = opened(0);
	struct kcov_trace t;
	size_t i, length;
	int ok = !kcov_enable(&k, KCOV_PC);

	t = kcov_read(&k);
	ok &= t.state == KCOV_COMPLETE && t.capacity == k.words - 1;
	kcov_reset(&k);
	call();
	t = kcov_read(&k);
	length = t.length;
	ok &= length > 0 && length < 10000 && t.state == KCOV_COMPLETE;
	for (i = 0; i < length; i++)
		ok &= kcov_pc(&t, i) > 0xffff;
	kcov_reset(&k);
	ok &= !kcov_read(&k).length;
	call();
	length = kcov_read(&k).length;
	ok &= length > 0 && !kcov_disable(&k);
	length = kcov_read(&k).length;
	call();
	ok &= kcov_read(&k).length == length;
	kcov_close(&k);
	return ok;
}

/* A page fault may add records to some tries. */
static int enabling_empties(void)
{
	struct kcov k = opened(0);
	int tries, ok;

	/* Before the system call too: with this count, its end would not be recorded. */
	kcov_store_count(&k, k.width, k.words);
	ok = !kcov_enable(&k, KCOV_PC) && k.buffer[1] != 0 && !kcov_disable(&k);
	for (tries = 0; tries < 1000; tries++) {
		size_t length;

		ok &= !kcov_enable(&k, KCOV_PC);
		length = kcov_read(&k).length;
		ok &= !kcov_disable(&k);
		if (!length)
			break;
	}
	kcov_close(&k);
	return ok && tries < 1000;
}

static int disabling_keeps_the_count(void)
{
	struct kcov k = opened(0);
	struct kcov_trace before;
	int ok = !kcov_enable(&k, KCOV_PC);

	call();
	kcov_store_count(&k, k.width, 5);
	/* The records of the system call that disables do not count. */
	ok &= !kcov_disable(&k);
	before = kcov_read(&k);
	ok &= before.count == 5 && before.length == 5;
	kcov_close(&k);
	return ok;
}

static int enabling_twice(void)
{
	struct kcov k = opened(0), other = opened(0), none;
	int ok;

	ok = !kcov_open_file(&none, NULL) && kcov_enable(&none, KCOV_PC) != KCOV_OK;
	ok &= kcov_disable(&k) == KCOV_NOT_ENABLED;
	ok &= !kcov_enable(&k, KCOV_PC) && kcov_enable(&k, KCOV_PC) == KCOV_ALREADY_ENABLED;
	ok &= kcov_enable(&other, KCOV_PC) == KCOV_ALREADY_ENABLED;
	ok &= failed(&other, KCOV_ALREADY_ENABLED, EBUSY, "traced through another descriptor");
	ok &= kcov_disable(&other) == KCOV_NOT_ENABLED && other.operation == KCOV_OP_DISABLE;
	/* A refused request changes no count: the records of that system call are there. */
	none.buffer = k.buffer;
	none.words = k.words;
	none.width = k.width;
	kcov_reset(&k);
	ok &= kcov_disable(&none) == KCOV_NOT_ENABLED && kcov_read(&k).length > 0;
	none.buffer = NULL;
	/* Closing disables, so this thread can be traced again. */
	kcov_close(&k);
	ok &= !kcov_enable(&other, KCOV_PC) && !kcov_disable(&other);
	ok &= kcov_disable(&other) == KCOV_NOT_ENABLED;
	ok &= kcov_enable(&other, 77) != KCOV_OK;
	kcov_close(&other);
	kcov_close(&none);
	return ok;
}

static int children(void)
{
	struct kcov k = opened(0);
	int status, ok = 1, turn;
	pid_t child;

	/* A child that does not disable: the kernel does. */
	for (turn = 0; turn < 3; turn++) {
		kcov_reset(&k);
		child = fork();
		if (!child) {
			if (kcov_enable(&k, KCOV_PC))
				_exit(1);
			call();
			_exit(0);
		}
		ok &= waitpid(child, &status, 0) == child && !status && kcov_read(&k).length > 10;
	}
	/* A child does not end its parent's tracing. */
	ok &= !kcov_enable(&k, KCOV_PC);
	child = fork();
	if (!child) {
		status = kcov_disable(&k) != KCOV_NOT_ENABLED;
		kcov_close(&k);
		_exit(status);
	}
	ok &= waitpid(child, &status, 0) == child && !status;
	kcov_reset(&k);
	call();
	ok &= kcov_read(&k).length > 0 && !kcov_disable(&k);
	kcov_close(&k);
	return ok;
}

/* Whether the value has at most so many bytes. */
static int fits(uint64_t value, unsigned bytes)
{
	uint64_t rest = bytes < 8 ? value >> 8 * bytes : 0;

#if defined(__NetBSD__)
	/* The cases of a switch are sign-extended. */
	if (bytes < 8 && rest == UINT64_MAX >> 8 * bytes)
		return 1;
#endif
	return rest == 0;
}

/* On a kernel without comparisons, enabling says so. */
static int comparisons(void)
{
	struct kcov k = opened(0);
	struct kcov_trace t;
	struct kcov_comparison c;
	size_t i;
	int ok = 1;

	if (kcov_enable(&k, KCOV_CMP)) {
		printf("# without comparisons\n");
		ok = failed(&k, KCOV_MODE_NOT_BUILT_IN, 524, "CONFIG_KCOV_ENABLE_COMPARISONS=y");
		kcov_close(&k);
		return ok;
	}
	call();
	t = kcov_read(&k);
	ok &= t.length > 0 && t.capacity == (k.words * k.width / 8 - 1) / 4 && !kcov_disable(&k);
	for (i = 0; i < t.length; i++) {
		c = kcov_cmp(&t, i);
		ok &= c.type < 8 && kcov_cmp_is_const(c) == (int)(c.type & 1) && c.pc > 0xffff;
		ok &= fits(c.arg1, kcov_cmp_bytes(c)) && fits(c.arg2, kcov_cmp_bytes(c));
	}
	ok &= !kcov_enable(&k, KCOV_PC);
	call();
	t = kcov_read(&k);
	ok &= t.length > 0 && kcov_pc(&t, 0) > 0xffff && !kcov_disable(&k);
	kcov_close(&k);
	return ok;
}

static int full_and_corrupt(void)
{
	struct kcov k = opened(1);
	struct kcov_trace t;
	int i, ok = !kcov_enable(&k, KCOV_PC);

	for (i = 0; i < 2000; i++)
		call();
	t = kcov_read(&k);
	ok &= t.state == KCOV_TRUNCATED && t.length == k.words - 1 && kcov_pc(&t, t.length - 1);
	kcov_store_count(&k, k.width, k.words);
	t = kcov_read(&k);
	ok &= t.state == KCOV_CORRUPT && !t.length && !kcov_pc(&t, 0);
	/* A corrupt trace does not look empty after disabling, nor does it hinder enabling. */
	kcov_store_count(&k, k.width, ~(uint64_t)0);
	ok &= !kcov_disable(&k);
	t = kcov_read(&k);
	ok &= t.state == KCOV_CORRUPT && t.count == (k.width == 8 ? ~(uint64_t)0 : 0xffffffff);
	ok &= !kcov_enable(&k, KCOV_PC);
	kcov_reset(&k);
	call();
	t = kcov_read(&k);
	ok &= t.length > 0 && t.state == KCOV_COMPLETE;
	kcov_close(&k);
	return ok;
}

#if defined(__linux__)
static int remote(void)
{
	struct kcov k = opened(0), other = opened(0);
	struct kcov_remote r;
	int status, ok;
	pid_t child;

	memset(&r, 0, sizeof(r));
	r.area = 2;
	ok = kcov_remote_enable(&k, &r) == KCOV_SIZE_OUT_OF_LIMITS && k.error == 0;
	r.area = 64;
	r.count = KCOV_LINUX_MAX_HANDLES + 1;
	ok &= kcov_remote_enable(&k, &r) == KCOV_TOO_MANY_HANDLES;
	r.count = 1;
	r.handles[0] = (uint64_t)7 << 56 | 1;
	ok &= kcov_remote_enable(&k, &r) == KCOV_UNKNOWN_SUBSYSTEM;
	ok &= failed(&k, KCOV_UNKNOWN_SUBSYSTEM, EINVAL, "such as USB");
	r.handles[0] = kcov_usb_handle(77);
	r.common = 4711;
	r.mode = KCOV_PC;
	ok &= !kcov_remote_enable(&k, &r) && kcov_remote_enable(&k, &r) == KCOV_ALREADY_ENABLED;
	ok &= kcov_remote_enable(&other, &r) == KCOV_ALREADY_ENABLED && other.error == EBUSY;
	/* Another thread may collect, but not from the same handle. */
	child = fork();
	if (!child) {
		if (kcov_remote_enable(&other, &r) != KCOV_HANDLE_IN_USE)
			_exit(1);
		r.common = 4712;
		r.handles[0]++;
		_exit(kcov_remote_enable(&other, &r) || kcov_disable(&other));
	}
	ok &= waitpid(child, &status, 0) == child && !status;
	ok &= !kcov_read(&k).length && !kcov_disable(&k);
	kcov_close(&k);
	kcov_close(&other);
	return ok;
}
#else
static int remote(void)
{
	struct kcov k;
	int ok = !kcov_open_file(&k, NULL);

	/* A port that no kernel has, or a release without remote coverage. */
	ok &= kcov_attach(&k, KCOV_NETBSD_VHCI, kcov_vhci_id(9, 99)) != KCOV_OK;
	ok &= k.kind == KCOV_NO_SUCH_SOURCE || k.kind == KCOV_UNSUPPORTED;
	ok &= kcov_detach(&k) != KCOV_OK;
	kcov_close(&k);
	return ok;
}
#endif

int main(void)
{
	ktap_begin(10);
	ktap(open_says_why_not(), "open-says-why-not");
	ktap(sizes(), "sizes");
	ktap(a_call_is_traced(), "a-call-is-traced");
	ktap(enabling_empties(), "enabling-empties");
	ktap(disabling_keeps_the_count(), "disabling-keeps-the-count");
	ktap(enabling_twice(), "enabling-twice");
	ktap(children(), "children");
	ktap(comparisons(), "comparisons");
	ktap(full_and_corrupt(), "full-and-corrupt");
	ktap(remote(), "remote");
	return ktap_failed != 0;
}
