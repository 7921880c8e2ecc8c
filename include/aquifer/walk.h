/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: small programs that follow pointers through a region, executed where
 * the memory is. One request goes to the memory node, one answer comes back,
 * however many nodes of a list or tree were visited in between.
 *
 *	struct aq_walk *walk;
 *	struct { uint64_t key, value; uint32_t found; } pad = {.key = 42};
 *
 *	aq_walk_load(rack, "find.walk", NULL, &walk);
 *	if (aq_walk_run(walk, region, first, &pad, sizeof(pad), NULL) == 0 &&
 *	    pad.found)
 *		printf("%lu\n", pad.value);
 *
 * A walk starts at an offset of the region. For each node it is given the
 * node's bytes and a scratch pad, and says where to go next, or that it is
 * done. Pointers inside the region are offsets, too. The pad comes from the
 * caller and goes back to it. A node of the structure must not cross a stripe
 * of a region on several memory nodes.
 *
 * `aquifer walk build` makes a .walk file from C; aq_walk_make makes walks of
 * common structures without a compiler.
 *
 * Errors, beside those of <aquifer/aquifer.h>:
 *	-ELOOP		more iterations than allowed: perhaps a circle
 *	-ETIMEDOUT	it goes on for longer than the rack's deadline
 *	-EFAULT		a pointer leads out of the region or across a stripe, or
 *			the walk refused a value; the words have the pointer
 *	-ECANCELED	the walk itself gave up; its result has the code
 *	-EACCES		the walk stores, and the region may only be read
 *	-EOPNOTSUPP	the walk cannot run where it was told to
 *	-EMSGSIZE	the pad is larger than a packet on the way to the node
 *	-EBADMSG	no image of a walk
 *	-EINVAL		the image was refused; the words say why
 *
 * A walk that stores is executed once. After -EHOSTDOWN and -ESTALE it was
 * executed once, in part, or not at all.
 */
#ifndef AQUIFER_WALK_H
#define AQUIFER_WALK_H

#include <aquifer/aquifer.h>
#include <aquifer/walk_shape.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aq_walk;
struct aq_walks;

enum aq_walk_flags {
	/* Run in this process, which reads each node: READs, or loads where the
	 * memory is mapped. Not for walks that store. */
	AQ_WALK_HERE = 1u << 0,
	/* Run on the memory node. */
	AQ_WALK_THERE = 1u << 1,
	/* Neither: the library decides, see aq_walk_plan. */

	/* Where a walk changes from one memory node to another: the switch
	 * carries it on, if its program `walk` knows the region; or it comes
	 * back to this process, which asks the next node. Neither: by the
	 * switch, if one of the rack's configuration has that program. */
	AQ_WALK_CROSS_SWITCH = 1u << 2,
	AQ_WALK_CROSS_BOUNCE = 1u << 3,
};

/* Zero-initialise it; unset members have their default. */
struct aq_walk_options {
	uint32_t flags; /* enum aq_walk_flags */
	/* Nodes to visit at most, then -ELOOP; 0: 65536. */
	uint32_t iterations;
	uint64_t reserved_more[4];
};

enum {
	AQ_WALK_NAME_MAX = 24,	/* characters */
	AQ_WALK_PAD_MAX = 4032, /* bytes of a scratch pad */
	AQ_WALKS_DEPTH_MAX = 128,
	AQ_WALK_WRITE_MAX = 4096, /* bytes that are written before a walk */
};

/*
 * Loads the image of a walk from a file, or from memory, or makes that of a
 * ready one. Nodes are given it when it first runs there, and again when they
 * were restarted meanwhile. `options` may be NULL. The caller owns *walk, and
 * closes it before the rack.
 *
 * Threads: a walk may be shared between threads; aq_walk_run of one walk serves
 * them one after the other. Threads that want to run at the same time have a
 * struct aq_walks each.
 */
AQ_API int aq_walk_load(struct aq_rack *rack, const char *path,
			const struct aq_walk_options *options,
			struct aq_walk **walk);
AQ_API int aq_walk_load_bytes(struct aq_rack *rack, const void *bytes,
			      size_t len_bytes,
			      const struct aq_walk_options *options,
			      struct aq_walk **walk);
AQ_API int aq_walk_make(struct aq_rack *rack, const struct aq_walk_shape *shape,
			const struct aq_walk_options *options,
			struct aq_walk **walk);
/* Nodes keep the program. NULL is allowed. */
AQ_API void aq_walk_close(struct aq_walk *walk);

struct aq_walk_info {
	char name[AQ_WALK_NAME_MAX + 1];
	uint8_t stores; /* it may change nodes */
	uint8_t reserved[6];
	uint64_t hash; /* by which nodes know it */
	uint32_t instructions;
	uint32_t longest;  /* cost of the longest path through them */
	int32_t load_from; /* of a node's bytes, counted from the pointer */
	uint32_t load_bytes;
	uint32_t pad_bytes;
	uint32_t reserved_more;
};

AQ_API void aq_walk_info(const struct aq_walk *walk, struct aq_walk_info *info);
/* Its image, which is valid as long as the walk. */
AQ_API const void *aq_walk_image(const struct aq_walk *walk, size_t *len_bytes);

struct aq_walk_result {
	void *user;	     /* of aq_walks_submit */
	uint64_t iterations; /* nodes visited */
	uint64_t at;	     /* the last of them, or where it could not go */
	int32_t err;	     /* 0 or -errno */
	uint32_t code;	     /* of -ECANCELED */
	uint32_t where;	     /* AQ_WALK_HERE or AQ_WALK_THERE */
	uint32_t requests;   /* to memory nodes */
	uint32_t crossings;  /* from one memory node to another */
	uint32_t carried;    /* of these, by the switch */
};

/*
 * Runs a walk from offset `start` on and waits for its end, within the rack's
 * deadline. The first pad_bytes of the scratch pad come from `pad`, the rest is
 * zero; as many come back, whatever happened, and as far as the walk got. That
 * is at most what the walk's pad has (-EINVAL). `result` may be NULL.
 */
AQ_API int aq_walk_run(struct aq_walk *walk, struct aq_region *region,
		       uint64_t start, void *pad, size_t pad_bytes,
		       struct aq_walk_result *result);

/* Bytes for a region, at most AQ_WALK_WRITE_MAX: a new node, for example. */
struct aq_walk_write {
	uint64_t at;
	const void *bytes;
	size_t len_bytes;
};

/*
 * The same, and `write` is in the region before the walk begins: so a node is
 * made, and linked by a walk that stores. If one memory node has these bytes
 * and the node where the walk starts, both travel together, and it takes one
 * round trip. -EACCES: the region was opened read-only. After an error `write`
 * may have been done.
 */
AQ_API int aq_walk_run_after(struct aq_walk *walk, struct aq_region *region,
			     const struct aq_walk_write *write, uint64_t start,
			     void *pad, size_t pad_bytes,
			     struct aq_walk_result *result);

/* Where a walk on that region would run, and why. */
struct aq_walk_plan {
	uint32_t where; /* AQ_WALK_HERE or AQ_WALK_THERE */
	uint32_t nodes; /* memory nodes of the region */
	/* Of one iteration, as the slowest of these nodes measured it when it
	 * started: computing, and loading the bytes of a node. Walks that
	 * compute for longer than eta times what they load run here. 0: not
	 * known. */
	double compute_ns;
	double load_ns;
	double eta;
	uint32_t iterations; /* that a node makes for one request */
	uint32_t cross;	     /* AQ_WALK_CROSS_*; 0: it is not to */
	char why[128];
};

AQ_API int aq_walk_plan(struct aq_walk *walk, struct aq_region *region,
			struct aq_walk_plan *plan);

/* ---- many at a time ------------------------------------------------------ */

/*
 * Walks of one thread that are under way at the same time, `depth` of them (1
 * to AQ_WALKS_DEPTH_MAX; 0: 16). It belongs to one thread at a time; close it
 * before the walks, regions and rack that it was used with.
 */
AQ_API int aq_walks_open(struct aq_rack *rack, uint32_t depth,
			 struct aq_walks **walks);
/* What is under way is forgotten; stores may have been done. NULL is
 * allowed. */
AQ_API void aq_walks_close(struct aq_walks *walks);

/*
 * Starts one. `pad` must stay until the walk's end, when it is filled by
 * aq_walks_poll. -EAGAIN: `depth` are under way; poll first. The first walk on
 * a region connects to its nodes, which takes a while. Other errors are of this
 * walk alone, which then never started.
 */
AQ_API int aq_walks_submit(struct aq_walks *walks, struct aq_walk *walk,
			   struct aq_region *region, uint64_t start, void *pad,
			   size_t pad_bytes, void *user);

/* The same for what aq_walk_run_after does; the bytes are copied. */
AQ_API int aq_walks_submit_after(struct aq_walks *walks, struct aq_walk *walk,
				 struct aq_region *region,
				 const struct aq_walk_write *write,
				 uint64_t start, void *pad, size_t pad_bytes,
				 void *user);

/* Those that ended since, up to max_count; does not wait for them. -errno only
 * when nothing can be polled any more. aq_last_error has the words of the last
 * failure among them. */
AQ_API int aq_walks_poll(struct aq_walks *walks, struct aq_walk_result *results,
			 unsigned max_count);

/* How many are under way. */
AQ_API uint32_t aq_walks_pending(const struct aq_walks *walks);

#ifdef __cplusplus
}
#endif

#endif
