/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects behind the structures that applications see. Each begins with its
 * public structure, so a pointer to one is a pointer to the other.
 *
 * An object whose `nic` is NULL (a channel: whose wr_fd is -1) was inherited
 * through fork and can only be destroyed.
 *
 * Locks, in the order they may be taken: registry, context mutex, channel
 * mutex, CQ lock (two CQs: by address), host lock. Nothing waits with a lock
 * held, so in the simulator no fiber ever meets a taken lock.
 */
#ifndef AQ_VERBS_PRIV_H
#define AQ_VERBS_PRIV_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "base/rundir.h"
#include "core/nic.h"
#include "core/nic_host.h"
#include "verbs.h"

/* The only symbols of this room that leave a shared library. */
#define VERBS_EXPORT __attribute__((visibility("default")))

enum {
	VERBS_PORT = 1, /* every device has one port */
	VERBS_COMP_VECTORS = 1,
	/* Foreign libraries look past struct ibv_device for their own fields
	 * and must find zeros there. */
	VERBS_DEVICE_SLACK_BYTES = 1024,
	VERBS_DM_ALIGN_BYTES = 4,
	VERBS_CORE_CLOCK_KHZ = 1000000, /* timestamps are nanoseconds */
};

/* ---- devices and contexts ----------------------------------------------- */

struct verbs_device {
	struct ibv_device ibv;
	uint8_t slack[VERBS_DEVICE_SLACK_BYTES];
	const struct nic_provider *provider;
	unsigned index;
	uint64_t guid;		   /* host order */
	unsigned refs;		   /* lists and contexts; registry's lock */
	struct verbs_device *next; /* registry's lock */
};

/* In the order in which closing a context destroys them: users first. */
enum verbs_kind {
	VERBS_QP,
	VERBS_AH,
	VERBS_MW,
	VERBS_MR,
	VERBS_SRQ,
	VERBS_CQ,
	VERBS_CHANNEL,
	VERBS_DM,
	VERBS_PD,
	VERBS_KIND_COUNT
};

/* What every object has: its place in the context's list of its kind, and its
 * asynchronous events that the application has read. Context's mutex. */
struct verbs_obj {
	struct verbs_obj *next;
	struct verbs_obj **prev;
	enum verbs_kind kind;
	uint32_t async_delivered;
	atomic_uint async_unread; /* in the pipe */
};

struct verbs_ctx {
	/* NULL after a fork, until the child needs a NIC of its own; context's
	 * mutex to change it. Read without: once set it stays. */
	struct nic_host *_Atomic host;
	struct verbs_device *device;
	char rack[RUNDIR_RACK_MAX + 1]; /* "": the rack of the settings */
	int async_wr_fd;
	atomic_uint async_unread;
	atomic_uint next_handle;
	struct verbs_obj *objs[VERBS_KIND_COUNT]; /* context's mutex */
	struct ibv_device_attr limits;
	struct verbs_ctx *next; /* registry's lock */
	struct verbs_ctx **prev;
	struct verbs_context v; /* last: the ABI lets it grow upwards */
};

static inline struct verbs_ctx *to_ctx(struct ibv_context *c)
{
	return container_of(c, struct verbs_ctx, v.context);
}

/* Stands in verbs_context.priv of our contexts and of no other. */
extern const char verbs_own_mark;

bool verbs_is_own(struct ibv_context *context);
/* After fork, in the child: the NIC and everything on it stayed with the
 * parent. What the child inherited is an empty shell, to be destroyed. */
void verbs_ctx_orphan(struct verbs_ctx *ctx);
void verbs_obj_link(struct verbs_ctx *ctx, struct verbs_obj *obj,
		    enum verbs_kind kind);
void verbs_obj_unlink(struct verbs_ctx *ctx, struct verbs_obj *obj);
uint32_t verbs_handle(struct verbs_ctx *ctx);

/* ---- registry ----------------------------------------------------------- */

const struct nic_provider *verbs_provider(void);
/* Counted; NULL without memory. */
struct verbs_device *verbs_device_get(const struct nic_provider *provider,
				      unsigned index);
/* Takes a reference if the pointer is a live device of ours. */
struct verbs_device *verbs_device_find(const struct ibv_device *device);
void verbs_device_put(struct verbs_device *dev);
void verbs_ctx_register(struct verbs_ctx *ctx);
void verbs_ctx_unregister(struct verbs_ctx *ctx);

/* ---- objects ------------------------------------------------------------ */

struct verbs_pd {
	struct ibv_pd ibv;
	struct nic_pd *nic;
	struct verbs_obj obj;
};

struct verbs_mr {
	struct ibv_mr ibv;
	struct nic_mr *nic;
	unsigned access;
	uint64_t watched; /* result of memory_watch; see nic_host_ops */
	struct verbs_obj obj;
};

struct verbs_mw {
	struct ibv_mw ibv;
	struct nic_mw *nic;
	struct verbs_obj obj;
};

struct verbs_dm {
	struct ibv_dm ibv;
	struct nic_dm *nic;
	struct verbs_obj obj;
};

struct verbs_ah {
	struct ibv_ah ibv;
	struct nic_ah *nic;
	struct verbs_obj obj;
};

struct verbs_srq {
	struct ibv_srq ibv;
	struct nic_srq *nic;
	struct nic_host *host;
	struct verbs_obj obj;
};

struct verbs_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct nic_cq *nic;
	struct nic_host *host;
	struct lock lock;	       /* one poller at a time */
	const struct nic_cqe *current; /* from start_poll to end_poll; lock */
	/* Channel's mutex, except unread and owed: written in the upcall. */
	struct verbs_cq *channel_next;
	struct verbs_cq **channel_prev;
	uint32_t comp_delivered;
	atomic_uint unread;
	atomic_bool owed; /* the pipe was full */
	struct verbs_obj obj;
};

struct verbs_channel {
	struct ibv_comp_channel ibv;
	int wr_fd;
	atomic_uint unread;
	atomic_bool owed;
	pthread_mutex_t mutex;
	struct verbs_cq *cqs;
	struct verbs_obj obj;
};

/* Work requests between wr_start and wr_complete. */
struct verbs_stage {
	struct lock lock; /* held from wr_start to wr_complete or wr_abort */
	int err;
	uint32_t capacity;
	uint32_t count;
	uint32_t sge_stride;
	uint32_t inline_stride;
	struct ibv_send_wr *current; /* the last slot takes the overflow */
	struct ibv_send_wr *wrs;     /* capacity + 1, as the other two */
	struct ibv_sge *sges;
	uint8_t *bytes;
};

struct verbs_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct nic_qp *nic;
	struct nic_host *host;
	struct verbs_stage *stage; /* NULL: not made for wr_* */
	struct ibv_qp_cap cap;
	bool sq_sig_all;
	struct verbs_obj obj;
};

/* The kinds that have a half in the NIC. */
#define VERBS_NIC_OBJECTS(X) \
	X(QP, qp)            \
	X(AH, ah)            \
	X(MW, mw)            \
	X(MR, mr)            \
	X(SRQ, srq)          \
	X(CQ, cq)            \
	X(DM, dm)            \
	X(PD, pd)

#define VERBS_TO(KIND, x)                                         \
	static inline struct verbs_##x *to_##x(struct ibv_##x *p) \
	{                                                         \
		return container_of(p, struct verbs_##x, ibv);    \
	}
VERBS_NIC_OBJECTS(VERBS_TO)
#undef VERBS_TO

static inline struct verbs_channel *to_channel(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct verbs_channel, ibv);
}

/* Ends the NIC's half, if there is one, and the object: 0 or -errno. */
#define VERBS_END(x, end)                                                      \
	({                                                                     \
		struct verbs_ctx *ctx_ = to_ctx((x)->ibv.context);             \
		int rc_ = 0;                                                   \
                                                                               \
		if ((x)->nic) {                                                \
			struct nic_host *host_ = verbs_host(&ctx_->v.context); \
                                                                               \
			lock_take(&host_->lock);                               \
			rc_ = end((x)->nic);                                   \
			lock_drop(&host_->lock);                               \
		}                                                              \
		if (!rc_) {                                                    \
			verbs_obj_unlink(ctx_, &(x)->obj);                     \
			free(x);                                               \
		}                                                              \
		rc_;                                                           \
	})

/* Give the object up for good, without waiting for acknowledged events; used
 * when its context closes. */
void verbs_srq_drop(struct verbs_srq *srq);
void verbs_cq_drop(struct verbs_cq *cq);
void verbs_channel_drop(struct verbs_channel *ch);
void verbs_qp_drop(struct verbs_qp *qp);

/* A managed queue pair; NULL with errno. */
struct ibv_qp *verbs_create_chain_qp(struct ibv_pd *pd,
				     struct ibv_qp_init_attr *init,
				     const struct nic_chain_attr *chain);

/* ---- data path (post.c, cq.c, cq_ex.c, mw.c) ---------------------------- */

int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr);
/* One request with its handles translated; host lock held. 0 or -errno. */
int verbs_post_one(struct verbs_qp *qp, const struct ibv_send_wr *wr);
int verbs_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);

void verbs_cq_ex_init(struct verbs_cq *cq, uint64_t wc_flags);
int verbs_qp_ex_init(struct verbs_qp *qp, uint64_t send_ops_flags);
void verbs_stage_destroy(struct verbs_stage *stage);

/* ---- verbs that applications reach through the context ------------------ */

int verbs_query_port(struct ibv_context *context, uint8_t port_num,
		     struct ibv_port_attr *attr, size_t attr_bytes);
int verbs_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_bytes);
int verbs_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_dm *verbs_alloc_dm(struct ibv_context *context,
			      struct ibv_alloc_dm_attr *attr);
int verbs_free_dm(struct ibv_dm *dm);
struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			       uint64_t dm_offset, size_t length,
			       unsigned access);
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind);
int verbs_dealloc_mw(struct ibv_mw *mw);

/* ---- events ------------------------------------------------------------- */

/* A pipe, closed on exec; the write end never blocks. 0 or -errno. */
int verbs_pipe_open(int *rd_fd, int *wr_fd) MUST_CHECK;
/* Before a read from `fd`, of which *unread records are known to be there:
 * drives the NIC for a while, then leaves it to its own thread. Returns at once
 * if the application made the descriptor non-blocking. */
void verbs_wait_readable(struct nic_host *host, int fd, atomic_uint *unread);
/* The NIC's upcalls; host lock held. */
void verbs_on_cq_event(struct nic_cq *cq, void *owner);
void verbs_on_async_event(void *owner, enum ibv_event_type type);
void verbs_channel_attach(struct verbs_channel *ch, struct verbs_cq *cq);
void verbs_channel_detach(struct verbs_channel *ch, struct verbs_cq *cq);

/* ---- exported, but in no installed header ------------------------------- */

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);
const char *ibv_get_sysfs_path(void);
/* Of the values that sysfs knows, 1 is RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
		       unsigned index, int *type);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* -EFAULT: not all of it is mapped, readable and, if asked for, writable. */
int verbs_range_check(const void *addr, size_t length,
		      bool writable) MUST_CHECK;
/* Access rights that a registration may ask for: 0 or -errno. */
int verbs_check_access(unsigned access) MUST_CHECK;

/* For extensions of the API. -EOPNOTSUPP: not ours; -EIO: of the parent
 * process, or without a NIC. */
int verbs_own_qp(struct ibv_qp *ibqp, struct verbs_qp **qp) MUST_CHECK;

static inline void *verbs_none(int err)
{
	errno = err;
	return NULL;
}

static inline int verbs_fail(int err)
{
	errno = err;
	return -1;
}

#endif
