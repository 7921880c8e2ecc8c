/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library, which come by the bell (run_channel.h). */
#include <errno.h>

#include "marks_priv.h"
#include "pager_priv.h"
#include "uffd.h"

/* Something else comes there: nothing may be dropped there from now on. */
static int do_leave(struct space *s, uint64_t page, uint64_t pages)
{
	run_set_add_range(&s->pages.alien, page, pages);
	run_space_show_aliens(s);
	return run_space_is_leaving(s) ? -EAGAIN : 0;
}

static int do_take(struct pager *p, struct space *s, uint64_t page,
		   uint64_t pages)
{
	int err = run_uffd_register(s->uffd, run_space_addr(s, page),
				    pages << RUN_PAGE_SHIFT);

	if (err)
		return err;
	run_marks_clear(p, s, page, pages);
	run_set_del_range(&s->pages.alien, page, pages);
	run_space_show_aliens(s);
	return 0;
}

static int do_marks(struct pager *p, struct space *s, uint32_t kind,
		    uint64_t page, uint64_t pages)
{
	switch (kind) {
	case RUN_CALL_LEAVE:
		return do_leave(s, page, pages);
	case RUN_CALL_TAKE:
		return do_take(p, s, page, pages);
	case RUN_CALL_KEEP:
		return run_marks_keep(p, s, page, pages);
	case RUN_CALL_UNKEEP:
		run_marks_unkeep(p, s, page, pages);
		break;
	case RUN_CALL_WIPE:
		run_set_add_range(&s->pages.wiped, page, pages);
		break;
	case RUN_CALL_UNWIPE:
		run_set_del_range(&s->pages.wiped, page, pages);
		break;
	case RUN_CALL_WITHHOLD:
		run_set_add_range(&s->pages.withheld, page, pages);
		break;
	case RUN_CALL_UNWITHHOLD:
		run_set_del_range(&s->pages.withheld, page, pages);
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static int do_call(struct pager *p, struct space *s, uint64_t bell_page)
{
	struct run_call call;
	uint64_t page;

	if (!s->channel)
		return run_attach_bind(p, s, bell_page);
	/* RUN-B1. Read once: it is the program's memory. */
	call = s->channel->call;
	if (call.kind == RUN_CALL_SELF)
		return 0;
	if (call.kind == RUN_CALL_KEEP_ALL)
		return run_marks_keep_all(p, s, call.bytes != 0);
	if (call.kind == RUN_CALL_KEEP_LATER) {
		s->keeps_all = true;
		return 0;
	}
	page = (call.start - s->start) >> RUN_PAGE_SHIFT;
	if (call.start < s->start || page >= RUN_RANGE_PAGES ||
	    call.bytes > (RUN_RANGE_PAGES - page) << RUN_PAGE_SHIFT)
		return -ERANGE;
	return do_marks(p, s, call.kind, page, call.bytes >> RUN_PAGE_SHIFT);
}

enum fault_end run_call_answer(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;
	int err = do_call(p, s, f->page);

	if (err == -EAGAIN)
		return FAULT_WAITS;
	if (s->channel)
		s->channel->call.err = err;
	/* The caller drops it again. */
	return run_fault_answered(
		s, f->page,
		run_uffd_zero(s->uffd, run_space_addr(s, f->page), 1));
}
