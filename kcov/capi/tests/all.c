/* Uses every function, so that every compiler sees all of them. */
#if defined(FIRST) && defined(__linux__)
#include <linux/ioctl.h>
#include <linux/kcov.h>
#elif defined(FIRST)
#include <sys/kcov.h>
#endif
#include "../kcov.h"
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

int main(void)
{
	struct kcov k;
	char why[KCOV_MESSAGE_MAX];
	struct kcov_trace t;
	struct kcov_comparison c;

	if (kcov_open(&k, NULL, 0) || kcov_enable(&k, KCOV_PC)) {
		puts(kcov_message(&k, why, sizeof(why)));
		return 1;
	}
	kcov_reset(&k);
	t = kcov_read(&k);
	c = kcov_cmp(&t, 0);
	if (kcov_disable(&k) || !kcov_pc(&t, 0) || kcov_cmp_bytes(c) == 1 || kcov_cmp_is_const(c))
		return 1;
#if defined(__linux__)
	{
		struct kcov_remote r;

		memset(&r, 0, sizeof(r));
		r.area = 64;
		r.handles[r.count++] = kcov_usb_handle(1);
		if (kcov_remote_enable(&k, &r))
			return 1;
	}
#else
	if (kcov_attach(&k, KCOV_NETBSD_VHCI, kcov_vhci_id(0, 1)) || kcov_detach(&k))
		return 1;
#endif
	kcov_close(&k);
	return 0;
}
