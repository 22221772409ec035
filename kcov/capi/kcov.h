/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kcov.h: the kernel's coverage device kcov, on Linux and NetBSD.
 *
 * C99 and C++11, no dependency but libc. All functions are static inline. Copy this file.
 *
 *	struct kcov k;
 *	struct kcov_trace t;
 *	size_t i;
 *
 *	if (kcov_open(&k, NULL, 0) || kcov_enable(&k, KCOV_PC)) {
 *		kcov_perror(&k, "example");
 *		return 1;
 *	}
 *	read(-1, NULL, 0);
 *	t = kcov_read(&k);
 *	kcov_disable(&k);
 *	for (i = 0; i < t.length; i++)
 *		printf("%#" PRIx64 "\n", kcov_pc(&t, i));
 *	kcov_close(&k);
 *
 * Functions that can fail return KCOV_OK, which is 0, or the kind of the error. kcov_perror() prints
 * the sentence. errno is that of the failed system call.
 *
 * Words: the kernel writes its words to the buffer. A word has 8 bytes, or 4 in mode KCOV_PC under a
 * 32-bit Linux kernel. Word 0 is the number of records. The functions return uint64_t in any case.
 *
 * Threads: the kernel traces the thread that enables, and only that thread can disable. Children of
 * fork(2) share descriptor and buffer but are not traced. Tracing goes on after execve(2).
 *
 * Nothing here trusts the buffer: a target may write to it.
 */
#ifndef KCOV_H
#define KCOV_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/vfs.h>
#elif !defined(__NetBSD__)
#error "kcov.h knows the kcov devices of Linux and NetBSD"
#endif

/* BEGIN GENERATED */
/* Linux. The encoding of requests depends on the architecture. */
#if defined(__mips__) || defined(__powerpc__) || defined(__powerpc64__)
#define KCOV_LINUX_INIT_TRACE32 0x40046301u
#define KCOV_LINUX_INIT_TRACE64 0x40086301u
#define KCOV_LINUX_ENABLE 0x20006364u
#define KCOV_LINUX_DISABLE 0x20006365u
#define KCOV_LINUX_REMOTE_ENABLE 0x80186366u
#else
#define KCOV_LINUX_INIT_TRACE32 0x80046301u
#define KCOV_LINUX_INIT_TRACE64 0x80086301u
#define KCOV_LINUX_ENABLE 0x6364u
#define KCOV_LINUX_DISABLE 0x6365u
#define KCOV_LINUX_REMOTE_ENABLE 0x40186366u
#endif
#define KCOV_LINUX_PATH "/sys/kernel/debug/kcov"
#define KCOV_LINUX_DEBUGFS 0x64626720u
#define KCOV_LINUX_TRACE_PC 0
#define KCOV_LINUX_TRACE_CMP 1
#define KCOV_LINUX_MAX_BYTES 0x7fffffffu
#define KCOV_LINUX_MAX_HANDLES 256
#define KCOV_LINUX_SUBSYSTEM_USB 0x0100000000000000ull
#define KCOV_LINUX_INSTANCE_MASK 0xffffffffull

/* NetBSD. */
#define KCOV_NETBSD_SETBUFSIZE 0x80084b01u
#define KCOV_NETBSD_ENABLE 0x80044b02u
#define KCOV_NETBSD_DISABLE 0x20004b03u
#define KCOV_NETBSD_REMOTE_ATTACH 0x80104b0au
#define KCOV_NETBSD_REMOTE_DETACH 0x20004b0bu
#define KCOV_NETBSD_PATH "/dev/kcov"
#define KCOV_NETBSD_MAJOR 346
#define KCOV_NETBSD_TRACE_PC 1
#define KCOV_NETBSD_TRACE_CMP 2
#define KCOV_NETBSD_MAX_WORDS 0x40000
#define KCOV_NETBSD_VHCI 0

/* Both: words of a comparison. */
#define KCOV_CMP_WORDS 4

/* What was wrong. */
enum kcov_kind {
	KCOV_OK,
	KCOV_UNSUPPORTED,
	KCOV_NOT_BUILT_IN,
	KCOV_DEBUGFS_NOT_MOUNTED,
	KCOV_PERMISSION_DENIED,
	KCOV_LOCKED_DOWN,
	KCOV_NOT_KCOV,
	KCOV_SIZE_OUT_OF_LIMITS,
	KCOV_DESCRIPTOR_OUT_OF_LIMITS,
	KCOV_MODE_NOT_BUILT_IN,
	KCOV_ALREADY_ENABLED,
	KCOV_HANDLE_IN_USE,
	KCOV_UNKNOWN_SUBSYSTEM,
	KCOV_TOO_MANY_HANDLES,
	KCOV_NO_SUCH_SOURCE,
	KCOV_SOURCE_IN_USE,
	KCOV_ENDED_ELSEWHERE,
	KCOV_NOT_ENABLED,
	KCOV_OUT_OF_MEMORY,
	KCOV_OTHER
};

/* What failed. */
enum kcov_operation {
	KCOV_OP_OPEN,
	KCOV_OP_SET_SIZE,
	KCOV_OP_MAP,
	KCOV_OP_ENABLE,
	KCOV_OP_ENABLE_REMOTE,
	KCOV_OP_DISABLE,
	KCOV_OP_DISABLE_REMOTE,
	KCOV_OP_ATTACH
};

/* The rest of "cannot ...". */
static inline const char *kcov_operation_text(enum kcov_operation operation)
{
	static const char *const texts[] = {
		"open the kcov device",
		"set the size of the kcov buffer",
		"map the kcov buffer",
		"enable kcov tracing of this thread",
		"enable collection of remote kcov coverage",
		"disable kcov tracing of this thread",
		"disable collection of remote kcov coverage",
		"attach the kcov device to a source",
	};

	return texts[operation];
}

/* A kind in words, and what to do or NULL. */
static inline const char *const *kcov_kind_texts(enum kcov_kind kind)
{
	static const char *const texts[][2] = {
		{"no error", NULL},
		{"not supported on this system", "run on a system that has it"},
		{"this kernel has no kcov", NULL},
		{"debugfs is not mounted there", "run 'mount -t debugfs none /sys/kernel/debug' as root, or give the path"},
		{"permission denied", NULL},
		{"kernel lockdown forbids it", NULL},
		{"not a kcov device", "check the path"},
		{"the size is out of limits", NULL},
		{"no descriptor is left within the limits", "close descriptors, or raise the limit on open files"},
		{"this kernel was built without the mode", NULL},
		{"already enabled", NULL},
		{"a handle is in use", NULL},
		{"a handle's subsystem is unknown to this kernel", "use a subsystem that this kernel has, such as USB"},
		{"more than 256 handles", "spread them over several devices and threads"},
		{"this kernel has no such source", NULL},
		{"the source is in use", NULL},
		{"collection was already ended elsewhere", NULL},
		{"not enabled by this thread", "disable on the thread that enabled; a forked child inherits the descriptor but is not traced"},
		{"out of memory", "free memory and try again"},
		{"unexpected error", NULL},
	};

	return texts[kind];
}

/* An errno of an operation: its kind, and what to do if the kind does not tell. */
struct kcov_meaning {
	enum kcov_operation operation;
	int error;
	enum kcov_kind kind;
	const char *help;
};

/* The meaning of this errno, or NULL. */
static inline const struct kcov_meaning *kcov_meaning_of(enum kcov_operation operation,
								 int error)
{
	static const struct kcov_meaning all[] = {
#if defined(__linux__)
		{KCOV_OP_OPEN, ENOENT, KCOV_NOT_BUILT_IN, "build the kernel with CONFIG_KCOV=y and CONFIG_DEBUG_FS=y"},
		{KCOV_OP_OPEN, EACCES, KCOV_PERMISSION_DENIED, "run as root: by default only root may use debugfs and its kcov file; in a container, bind-mount the file and grant access to it"},
		{KCOV_OP_OPEN, EPERM, KCOV_LOCKED_DOWN, "boot without kernel lockdown (see /sys/kernel/security/lockdown): it blocks every debugfs file that has ioctls"},
		{KCOV_OP_OPEN, ENOMEM, KCOV_OUT_OF_MEMORY, NULL},
		{KCOV_OP_OPEN, EMFILE, KCOV_DESCRIPTOR_OUT_OF_LIMITS, NULL},
		{KCOV_OP_SET_SIZE, EINVAL, KCOV_SIZE_OUT_OF_LIMITS, "choose a size of at most kcov_max_words() words"},
		{KCOV_OP_SET_SIZE, ENOMEM, KCOV_OUT_OF_MEMORY, "choose a smaller size: the buffer is unswappable kernel memory"},
		{KCOV_OP_SET_SIZE, ENOTTY, KCOV_NOT_KCOV, NULL},
		{KCOV_OP_MAP, ENOMEM, KCOV_OUT_OF_MEMORY, "choose a smaller size or raise the limit on address space"},
		{KCOV_OP_ENABLE, EINVAL, KCOV_ALREADY_ENABLED, "this device is already enabled, by this thread or another: disable it there first, or open one device per thread"},
		{KCOV_OP_ENABLE, EBUSY, KCOV_ALREADY_ENABLED, "this thread is traced through another descriptor: disable that one first, or enable this one in another thread"},
		{KCOV_OP_ENABLE, 524, KCOV_MODE_NOT_BUILT_IN, "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y"},
		{KCOV_OP_DISABLE, EINVAL, KCOV_NOT_ENABLED, NULL},
		{KCOV_OP_ENABLE_REMOTE, EINVAL, KCOV_ALREADY_ENABLED, "this device is already enabled: disable it first"},
		{KCOV_OP_ENABLE_REMOTE, EBUSY, KCOV_ALREADY_ENABLED, "this thread already has a remote session or, before Linux 7.2, any session: enable remote coverage in a helper thread"},
		{KCOV_OP_ENABLE_REMOTE, EEXIST, KCOV_HANDLE_IN_USE, "choose another common handle, or wait until the device that collects from this handle is disabled"},
		{KCOV_OP_ENABLE_REMOTE, 524, KCOV_MODE_NOT_BUILT_IN, "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y"},
		{KCOV_OP_ENABLE_REMOTE, ENOMEM, KCOV_OUT_OF_MEMORY, NULL},
#elif defined(__NetBSD__)
		{KCOV_OP_OPEN, ENOENT, KCOV_NOT_BUILT_IN, "create the node /dev/kcov ('sh MAKEDEV kcov' in /dev) and boot a kernel with 'options KCOV' and 'makeoptions KCOV=1'"},
		{KCOV_OP_OPEN, ENXIO, KCOV_NOT_BUILT_IN, "boot a kernel with 'options KCOV' and 'makeoptions KCOV=1': the node exists, but the driver does not"},
		{KCOV_OP_OPEN, EACCES, KCOV_PERMISSION_DENIED, "run as root or change the mode of /dev/kcov"},
		{KCOV_OP_OPEN, EMFILE, KCOV_DESCRIPTOR_OUT_OF_LIMITS, NULL},
		{KCOV_OP_SET_SIZE, EINVAL, KCOV_SIZE_OUT_OF_LIMITS, "choose a size of at most kcov_max_words() words"},
		{KCOV_OP_SET_SIZE, ENOTTY, KCOV_NOT_KCOV, NULL},
		{KCOV_OP_SET_SIZE, ENODEV, KCOV_NOT_KCOV, NULL},
		{KCOV_OP_SET_SIZE, EOPNOTSUPP, KCOV_NOT_KCOV, NULL},
		{KCOV_OP_SET_SIZE, ENOMEM, KCOV_OUT_OF_MEMORY, "choose a smaller size: the buffer is wired kernel memory"},
		{KCOV_OP_MAP, ENOMEM, KCOV_OUT_OF_MEMORY, "choose a smaller size or raise the limit on address space"},
		{KCOV_OP_ENABLE, EBUSY, KCOV_ALREADY_ENABLED, "this device is already enabled, or this thread is traced through another descriptor: disable that one first; a thread whose descriptor was closed while enabled can never be traced again"},
		{KCOV_OP_ENABLE, EINVAL, KCOV_MODE_NOT_BUILT_IN, "use a mode that this release supports"},
		{KCOV_OP_DISABLE, ENOENT, KCOV_NOT_ENABLED, NULL},
		{KCOV_OP_ATTACH, ENOENT, KCOV_NO_SUCH_SOURCE, "boot a kernel with vhci(4), and name a bus and a port that it has"},
		{KCOV_OP_ATTACH, EEXIST, KCOV_ALREADY_ENABLED, "a thread is traced through this device: disable it there first, or attach another device"},
		{KCOV_OP_ATTACH, EINVAL, KCOV_UNSUPPORTED, "run NetBSD 10 or later: earlier releases have no remote coverage"},
		{KCOV_OP_ENABLE_REMOTE, EBUSY, KCOV_SOURCE_IN_USE, "another session collects from the source: disable it first, through any attached device"},
		{KCOV_OP_ENABLE_REMOTE, EINVAL, KCOV_MODE_NOT_BUILT_IN, "use a mode that this release supports"},
		{KCOV_OP_DISABLE_REMOTE, ENOENT, KCOV_ENDED_ELSEWHERE, "read the trace before you disable, and keep others from disabling, detaching or closing devices attached to the source"},
#endif
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].operation == operation && all[i].error == error)
			return &all[i];
	return NULL;
}
/* END GENERATED */

/* Modes, by the numbers of the system. */
#if defined(__linux__)
#define KCOV_PATH KCOV_LINUX_PATH
enum kcov_mode { KCOV_PC = KCOV_LINUX_TRACE_PC, KCOV_CMP = KCOV_LINUX_TRACE_CMP };
#else
#define KCOV_PATH KCOV_NETBSD_PATH
enum kcov_mode { KCOV_PC = KCOV_NETBSD_TRACE_PC, KCOV_CMP = KCOV_NETBSD_TRACE_CMP };
#endif

/* Words of a buffer if you do not choose: NetBSD's maximum. */
#define KCOV_DEFAULT_WORDS ((size_t)256 << 10)

/*
 * A device. kcov_open() fills it in. You may change a part: move the descriptor with fcntl(2), or
 * take over a descriptor that another process has sized by setting fd, width and words and calling
 * kcov_map(). A parent whose children enable sets the mode in which it reads.
 */
struct kcov {
	int fd;
	int attached;              /* NetBSD: to a source of remote coverage */
	unsigned width;            /* bytes of a kernel word: 8 or 4 */
	unsigned mode;             /* the mode in which kcov_read() reads */
	size_t words;              /* size of the buffer in kernel words */
	volatile uint64_t *buffer; /* NULL while it is not mapped */
	/* The last failure: the operation, its kind, and the errno if a system call failed. */
	enum kcov_operation operation;
	enum kcov_kind kind;
	int error;
};

/* ---- Errors ---------------------------------------------------------------------------------- */

#define KCOV_MESSAGE_MAX 400

/* The last failure in one line, in text: what failed, why, and what to do. Returns text. */
static inline const char *kcov_message(const struct kcov *k, char *text, size_t size)
{
	const struct kcov_meaning *meaning = kcov_meaning_of(k->operation, k->error);
	const char *const *texts = kcov_kind_texts(k->kind);
	const char *help = texts[1];
	char number[32] = "";

	if (meaning && meaning->kind == k->kind && meaning->help)
		help = meaning->help;
	if (k->error)
		snprintf(number, sizeof(number), " (errno %d)", k->error);
	snprintf(text, size, "cannot %s: %s%s%s%s", kcov_operation_text(k->operation),
		 texts[0], number, help ? "; " : "", help ? help : "");
	return text;
}

/* Prints the last failure, with the program's name, to the standard error. */
static inline void kcov_perror(const struct kcov *k, const char *program)
{
	char text[KCOV_MESSAGE_MAX];

	fprintf(stderr, "%s: %s\n", program, kcov_message(k, text, sizeof(text)));
}

/* Notes a failure without an errno of the kernel's. */
static inline enum kcov_kind kcov_refuse(struct kcov *k, enum kcov_operation operation,
					 enum kcov_kind kind)
{
	k->operation = operation;
	k->kind = kind;
	k->error = 0;
	errno = EINVAL;
	return kind;
}

/* Notes the result of a system call. */
static inline enum kcov_kind kcov_result(struct kcov *k, enum kcov_operation operation, int result)
{
	const struct kcov_meaning *meaning;

	if (result >= 0)
		return KCOV_OK;
	meaning = kcov_meaning_of(operation, errno);
	k->operation = operation;
	k->kind = meaning ? meaning->kind : KCOV_OTHER;
	k->error = errno;
	return k->kind;
}

/* ---- System calls ---------------------------------------------------------------------------- */

/* Any ioctl of the device. Linux takes numbers by value, NetBSD by pointer. */
static inline int kcov_request(const struct kcov *k, unsigned long request, uintptr_t argument)
{
	return ioctl(k->fd, request, argument);
}

static inline int kcov_request_disable(const struct kcov *k)
{
#if defined(__linux__)
	/* The driver refuses any argument but 0. */
	return kcov_request(k, KCOV_LINUX_DISABLE, 0);
#else
	return kcov_request(k, KCOV_NETBSD_DISABLE, 0);
#endif
}

#if defined(__linux__)

/* Whether the file may get the requests: another driver could take a number for a pointer. */
static inline int kcov_is_kcov(int fd, const char *path)
{
	struct statfs fs;
	struct stat st;

	(void)path;
	return !fstatfs(fd, &fs) && (uint32_t)fs.f_type == KCOV_LINUX_DEBUGFS &&
	       !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* The kind of a failure to open. ENOENT has two causes. */
static inline enum kcov_kind kcov_why_not(const char *path, enum kcov_kind kind)
{
	char directory[4096];
	size_t length = strlen(path);
	struct statfs fs;

	if (errno != ENOENT || length >= sizeof(directory))
		return kind;
	while (length && path[length - 1] != '/')
		length--;
	memcpy(directory, path, length);
	memcpy(directory + length, ".", 2);
	if (!statfs(directory, &fs) && (uint32_t)fs.f_type == KCOV_LINUX_DEBUGFS)
		return kind;
	return KCOV_DEBUGFS_NOT_MOUNTED;
}

#else

/* Whether the file may get the requests. The descriptor of a cloned device does not tell. */
static inline int kcov_is_kcov(int fd, const char *path)
{
	struct stat st;

	(void)fd;
	return !stat(path, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) == KCOV_NETBSD_MAJOR;
}

static inline enum kcov_kind kcov_why_not(const char *path, enum kcov_kind kind)
{
	(void)path;
	return kind;
}

#endif

/* ---- Words ----------------------------------------------------------------------------------- */

/*
 * The kernel may be storing, so each word is loaded once and at once. tcc has no atomic builtins, and
 * some 32-bit machines have no atomic load of 64 bits; a volatile load serves there.
 */
#if defined(__GNUC__) && !defined(__TINYC__)
#define KCOV_LOAD(type, address) __atomic_load_n((const volatile type *)(address), __ATOMIC_RELAXED)
#define KCOV_ACQUIRE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#else
#define KCOV_LOAD(type, address) (*(const volatile type *)(address))
#define KCOV_ACQUIRE() ((void)0)
#endif

/* The word at this index, for words of this width. */
static inline uint64_t kcov_word(const volatile void *words, unsigned width, size_t index)
{
#if UINTPTR_MAX > 0xffffffff
	/* No kernel with narrower words runs this program. */
	(void)width;
	return KCOV_LOAD(uint64_t, (const volatile uint64_t *)words + index);
#else
	if (width == 4)
		return KCOV_LOAD(uint32_t, (const volatile uint32_t *)words + index);
	return ((const volatile uint64_t *)words)[index];
#endif
}

static inline void kcov_store_count(const struct kcov *k, unsigned width, uint64_t count)
{
	if (width == 4)
		*(volatile uint32_t *)k->buffer = (uint32_t)count;
	else
		*k->buffer = count;
}

/* The width of words in a mode. Comparisons have 8 bytes under every kernel. */
static inline unsigned kcov_width(const struct kcov *k)
{
	return k->mode == KCOV_CMP ? 8 : k->width;
}

#undef KCOV_LOAD

/* ---- Open, size, map, close ------------------------------------------------------------------ */

/* The maximum size in words that the system accepts and that fills whole pages. */
static inline size_t kcov_max_words(unsigned width)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE) / width;
#if defined(__linux__)
	size_t most = KCOV_LINUX_MAX_BYTES / width;
#else
	size_t most = KCOV_NETBSD_MAX_WORDS;
#endif
	return most - most % page;
}

/* Opens a device without a buffer. path is that of another file than KCOV_PATH, or NULL. */
static inline enum kcov_kind kcov_open_file(struct kcov *k, const char *path)
{
	memset(k, 0, sizeof(*k));
	k->width = 8;
	k->mode = KCOV_PC;
	if (!path)
		path = KCOV_PATH;
#if defined(O_CLOEXEC)
	k->fd = open(path, O_RDWR | O_CLOEXEC);
#else
	k->fd = open(path, O_RDWR);
#endif
	if (k->fd < 0) {
		kcov_result(k, KCOV_OP_OPEN, -1);
		return k->kind = kcov_why_not(path, k->kind);
	}
	fcntl(k->fd, F_SETFD, FD_CLOEXEC);
	if (!kcov_is_kcov(k->fd, path)) {
		close(k->fd);
		k->fd = -1;
		return kcov_refuse(k, KCOV_OP_OPEN, KCOV_NOT_KCOV);
	}
	return KCOV_OK;
}

/* Sets the size. A device gets one size only. Linux can map only whole pages. */
static inline enum kcov_kind kcov_set_size(struct kcov *k, size_t words)
{
#if defined(__linux__)
	int result = kcov_request(
		k, k->width == 8 ? KCOV_LINUX_INIT_TRACE64 : KCOV_LINUX_INIT_TRACE32, words);
#else
	uint64_t entries = words;
	int result = kcov_request(k, KCOV_NETBSD_SETBUFSIZE, (uintptr_t)&entries);
#endif
	enum kcov_kind kind = kcov_result(k, KCOV_OP_SET_SIZE, result);

	if (!kind)
		k->words = words;
	return kind;
}

/* Maps the buffer. */
static inline enum kcov_kind kcov_map(struct kcov *k)
{
	size_t bytes = k->words * k->width;
	void *start;

	/* NetBSD 9 would map nothing somewhere. */
	if (!bytes)
		return kcov_refuse(k, KCOV_OP_MAP, KCOV_OTHER);
	start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
	if (start == MAP_FAILED)
		return kcov_result(k, KCOV_OP_MAP, -1);
	k->buffer = (volatile uint64_t *)start;
	return KCOV_OK;
}

static inline void kcov_unmap(struct kcov *k)
{
	if (k->buffer)
		munmap((void *)(uintptr_t)k->buffer, k->words * k->width);
	k->buffer = NULL;
}

/* Disables if this thread is traced, unmaps and closes. A device that failed to open may be closed. */
static inline void kcov_close(struct kcov *k)
{
	if (k->fd < 0)
		return;
	/* A thread whose device was closed while enabled could never be traced again. */
	kcov_request_disable(k);
	kcov_unmap(k);
	close(k->fd);
	k->fd = -1;
}

/*
 * Opens a device, sets its size, and maps it. path is that of another file than KCOV_PATH, or NULL.
 * words is rounded up to whole pages; 0 means KCOV_DEFAULT_WORDS. After a failure, nothing is open.
 */
static inline enum kcov_kind kcov_open(struct kcov *k, const char *path, size_t words)
{
	enum kcov_kind kind = kcov_open_file(k, path);
	size_t size, page;

	if (kind)
		return kind;
	for (;;) {
		page = (size_t)sysconf(_SC_PAGESIZE) / k->width;
		size = words ? words : KCOV_DEFAULT_WORDS;
		if (size > kcov_max_words(k->width)) {
			kind = kcov_refuse(k, KCOV_OP_SET_SIZE, KCOV_SIZE_OUT_OF_LIMITS);
			break;
		}
		kind = kcov_set_size(k, (size + page - 1) / page * page);
		/* A 32-bit program may run under either kernel, and each knows only its own request. */
		if (kind != KCOV_NOT_KCOV || k->width == sizeof(long))
			break;
		k->width = 4;
	}
	if (kind || (kind = kcov_map(k))) {
		close(k->fd);
		k->fd = -1;
	}
	return kind;
}

/* ---- Enable and disable ---------------------------------------------------------------------- */

/* Forgets the records: the next one is the first. For the traced thread, between system calls. */
static inline void kcov_reset(const struct kcov *k)
{
	kcov_store_count(k, 8, 0);
}

/* Starts a recording in an empty buffer. */
static inline enum kcov_kind kcov_start(struct kcov *k, enum kcov_operation operation,
					unsigned long request, uintptr_t argument, unsigned mode)
{
	enum kcov_kind kind;

	/* With a count that somebody left there, some kernels write in front of the buffer. */
	if (k->buffer)
		kcov_reset(k);
	kind = kcov_result(k, operation, kcov_request(k, request, argument));
	if (kind)
		return kind;
	k->mode = mode;
	/* The end of the system call has been recorded. */
	if (k->buffer)
		kcov_reset(k);
	return KCOV_OK;
}

/* Starts tracing the calling thread, with an empty buffer. NetBSD: or collecting from a source. */
static inline enum kcov_kind kcov_enable(struct kcov *k, unsigned mode)
{
#if defined(__linux__)
	return kcov_start(k, KCOV_OP_ENABLE, KCOV_LINUX_ENABLE, mode, mode);
#else
	int number = (int)mode;

	return kcov_start(k, k->attached ? KCOV_OP_ENABLE_REMOTE : KCOV_OP_ENABLE,
			  KCOV_NETBSD_ENABLE, (uintptr_t)&number, mode);
#endif
}

/* Stops. The records stay; those of this system call are not among them. */
static inline enum kcov_kind kcov_disable(struct kcov *k)
{
	unsigned width = kcov_width(k);
	uint64_t count = k->buffer ? kcov_word(k->buffer, width, 0) : 0;
	int corrupt = count > k->words, result, error;

	if (corrupt)
		kcov_store_count(k, width, 0);
	result = kcov_request_disable(k);
	error = errno;
	/* If the kernel refuses, another thread may be counting. */
	if (k->buffer && (!result || corrupt))
		kcov_store_count(k, width, count);
	errno = error;
	return kcov_result(k, k->attached ? KCOV_OP_DISABLE_REMOTE : KCOV_OP_DISABLE, result);
}

/* ---- Records --------------------------------------------------------------------------------- */

enum kcov_state {
	KCOV_COMPLETE,  /* there was room for every record */
	KCOV_TRUNCATED, /* the buffer is full, and records may be missing */
	KCOV_CORRUPT    /* somebody else stored the count; there are no records */
};

/* Records that a buffer held at one moment. Later stores do not change their number. */
struct kcov_trace {
	const volatile void *words; /* the first record */
	unsigned width;             /* bytes of a word */
	enum kcov_state state;
	size_t length;              /* number of records */
	size_t capacity;            /* number of records that fit */
	uint64_t count;             /* the count, as read */
};

/* A record of mode KCOV_CMP. */
struct kcov_comparison {
	uint64_t type, arg1, arg2, pc;
};

/* Reads the count of any buffer, aligned to 8 bytes. One of less than 8 bytes, or NULL, is empty. */
static inline struct kcov_trace kcov_trace_of(const volatile void *buffer, size_t bytes,
					      unsigned width, unsigned mode)
{
	struct kcov_trace t;

	if (!buffer || bytes < 8) {
		memset(&t, 0, sizeof(t));
		return t;
	}
	t.width = mode == KCOV_CMP ? 8 : width;
	t.words = (const volatile char *)buffer + t.width;
	t.count = kcov_word(buffer, t.width, 0);
	/* Whoever sees the count of a remote section sees its records. */
	KCOV_ACQUIRE();
	t.capacity = (bytes / t.width - 1) / (mode == KCOV_CMP ? KCOV_CMP_WORDS : 1);
	t.length = t.count <= t.capacity ? (size_t)t.count : 0;
	t.state = t.count > t.capacity ? KCOV_CORRUPT :
		  t.count == t.capacity ? KCOV_TRUNCATED : KCOV_COMPLETE;
	return t;
}

#undef KCOV_ACQUIRE

/* The records since the last reset. While enabled, call it in the traced thread. */
static inline struct kcov_trace kcov_read(const struct kcov *k)
{
	return kcov_trace_of(k->buffer, k->words * k->width, k->width, k->mode);
}

/* The program counter at index, or 0 beyond the length. For traces of mode KCOV_PC. */
static inline uint64_t kcov_pc(const struct kcov_trace *t, size_t index)
{
	return index < t->length ? kcov_word(t->words, t->width, index) : 0;
}

/* The comparison at index, or zeros beyond the length. For traces of mode KCOV_CMP. */
static inline struct kcov_comparison kcov_cmp(const struct kcov_trace *t, size_t index)
{
	struct kcov_comparison c = {0, 0, 0, 0};

	if (index < t->length) {
		index *= KCOV_CMP_WORDS;
		c.type = kcov_word(t->words, 8, index);
		c.arg1 = kcov_word(t->words, 8, index + 1);
		c.arg2 = kcov_word(t->words, 8, index + 2);
		c.pc = kcov_word(t->words, 8, index + 3);
	}
	return c;
}

/* The size of the operands in bytes: 1, 2, 4 or 8. */
static inline unsigned kcov_cmp_bytes(struct kcov_comparison c)
{
	return 1u << (c.type >> 1 & 3);
}

/* Whether arg1 is a constant of the kernel's program. */
static inline int kcov_cmp_is_const(struct kcov_comparison c)
{
	return c.type & 1;
}

/* ---- Remote coverage ------------------------------------------------------------------------- */

#if defined(__linux__)

/* The background work to collect from. Begin with zeros: struct kcov_remote r = {0}; */
struct kcov_remote {
	uint32_t mode;
	uint32_t area;     /* words that one section in a thread can collect, at least 3 */
	uint32_t count;    /* of handles */
	uint32_t padding;
	uint64_t common;   /* a number of your choice below 2 to the 32nd, or 0 for none */
	uint64_t handles[KCOV_LINUX_MAX_HANDLES];
};

/* The handle of a USB bus. */
static inline uint64_t kcov_usb_handle(uint32_t bus)
{
	return KCOV_LINUX_SUBSYSTEM_USB | bus;
}

/*
 * Collects from background work, with an empty buffer, until this thread calls kcov_disable(). The
 * records of a section appear when it ends. Do not reset in between: the kernel could be counting.
 */
static inline enum kcov_kind kcov_remote_enable(struct kcov *k, const struct kcov_remote *r)
{
	enum kcov_kind kind;
	uint32_t i;

	if (r->count > KCOV_LINUX_MAX_HANDLES)
		return kcov_refuse(k, KCOV_OP_ENABLE_REMOTE, KCOV_TOO_MANY_HANDLES);
	/* The kernel writes beyond a smaller area, and takes a larger one for an enabled device. */
	if (r->area < 3 || (k->width == 4 && r->area > INT32_MAX / 4))
		return kcov_refuse(k, KCOV_OP_ENABLE_REMOTE, KCOV_SIZE_OUT_OF_LIMITS);
	kind = kcov_start(k, KCOV_OP_ENABLE_REMOTE, KCOV_LINUX_REMOTE_ENABLE, (uintptr_t)r,
			  r->mode);
	/* One errno has two meanings. A handle of an unknown kind decides. */
	for (i = 0; kind == KCOV_ALREADY_ENABLED && k->error == EINVAL && i < r->count; i++)
		if ((r->handles[i] & ~KCOV_LINUX_INSTANCE_MASK) != KCOV_LINUX_SUBSYSTEM_USB)
			kind = k->kind = KCOV_UNKNOWN_SUBSYSTEM;
	return kind;
}

#else

/* The id of a port of a virtual USB host controller, in subsystem KCOV_NETBSD_VHCI. */
static inline uint64_t kcov_vhci_id(uint32_t bus, uint32_t port)
{
	return (uint64_t)bus << 32 | port;
}

/*
 * Attaches a device of kcov_open_file() to a source of remote coverage and maps the source's buffer.
 * Then kcov_enable() collects from it. Anybody attached may end that by disabling or closing.
 */
static inline enum kcov_kind kcov_attach(struct kcov *k, uint64_t subsystem, uint64_t id)
{
	struct {
		uint64_t subsystem, id;
	} argument = {subsystem, id};
	enum kcov_kind kind;

	kind = kcov_result(k, KCOV_OP_ATTACH,
			   kcov_request(k, KCOV_NETBSD_REMOTE_ATTACH, (uintptr_t)&argument));
	if (kind)
		return kind;
	kcov_unmap(k);
	k->attached = 1;
	k->words = KCOV_NETBSD_MAX_WORDS;
	return kcov_map(k);
}

/* Ends the collection, and gives the source's buffer up. */
static inline enum kcov_kind kcov_detach(struct kcov *k)
{
	kcov_unmap(k);
	k->attached = 0;
	k->words = 0;
	return kcov_result(k, KCOV_OP_ATTACH, kcov_request(k, KCOV_NETBSD_REMOTE_DETACH, 0));
}

#endif

#endif /* KCOV_H */
