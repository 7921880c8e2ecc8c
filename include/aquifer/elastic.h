/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elastic far memory: files, queues and key-value stores that grow by blocks,
 * in the memory of the rack's nodes, and that go away when nobody renews the
 * lease of the folder or task they lie in (aquifer-ns(1)). Names are kept by
 * the rack's controller; data goes between the program and the nodes.
 *
 *	struct aq_queue *q;
 *	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE};
 *
 *	if (aq_queue_open(rack, "/wc/words", &o, &q) ||
 *	    aq_queue_put(q, "hello", 5, 1000))
 *		fprintf(stderr, "%s\n", aq_last_error());
 *
 * Exactly once: a change that was not answered is repeated by the library, and
 * the node executes it once. A change that ended with -ETIMEDOUT or -ESTALE may
 * have happened or not.
 *
 * Errors, beside those of aquifer.h:
 *	-ENOENT		there is no such name, or no such key
 *	-EAGAIN		the queue is empty, or has as many items as it may
 *	-ETIMEDOUT	no answer in time
 *	-EMSGSIZE	the record, item, key or value is larger than a block
 *			can have, or than the caller's memory
 *	-ECANCELED	the key has another version
 *	-EEXIST		the key is there
 *	-ENOSPC		no node has room for one more block
 *	-EROFS		the file is sealed
 *	-EPIPE		the queue is sealed, and nothing is left in it
 *	-ESTALE		what was opened is gone: removed, its lease is over, or
 *			the node that had it was restarted
 *
 * Threads: a handle is used by one thread at a time. Each has connections and a
 * session of its own; what a consumer has taken and not acknowledged goes back
 * when its process ends.
 */
#ifndef AQUIFER_ELASTIC_H
#define AQUIFER_ELASTIC_H

#include <aquifer/aquifer.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aq_file;
struct aq_queue;
struct aq_ekv;

enum aq_elastic_flags {
	AQ_ELASTIC_CREATE = 1u << 0, /* make it, if it is not there */
	AQ_ELASTIC_NEW = 1u << 1,    /* and -EEXIST if it is there */
	/* Where its lease was over, or it was lost, and the rack's vault has an
	 * image: load that first. Waits for a minute at most. -EBADMSG: the
	 * image is damaged, or cannot be read. */
	AQ_ELASTIC_LOAD = 1u << 2,
};

/* Zero-initialise it; unset members have their default. */
struct aq_elastic_options {
	uint32_t flags; /* enum aq_elastic_flags */
	/* Of what is made: bytes of a block, a power of two from 64 KiB to
	 * 1 GiB; 0: 8 MiB. */
	uint64_t block_bytes;
	/* Of a queue that is made: items at most; 0: as many as fit. */
	uint64_t bound;
	/* Of what is made: copies of each block, on as many nodes, up to 8; 0:
	 * as the root of the path says, or one. What was answered is on all of
	 * them, and a node that fails takes nothing along. */
	uint64_t copies;
	uint64_t reserved_more[3];
};

/* ---- names and leases ---------------------------------------------------- */

enum aq_name_kind {
	AQ_NAME_FOLDER = 1, /* also a task, and the root of a job */
	AQ_NAME_FILE,
	AQ_NAME_QUEUE,
	AQ_NAME_OTHER, /* of a newer release */
	AQ_NAME_EKV,
};

enum {
	AQ_NAME_MAX = 512, /* characters of a path, with the NUL */
};

/* Zero-initialise it; unset members have their default. */
struct aq_job_options {
	uint32_t lease_ms;     /* 0: 10 s */
	const char *on_expiry; /* "flush", "drop" or "keep"; NULL: flush where
				* the rack has a vault, else drop */
	/* {"TASK": ["PARENT", ...], ...} as JSON; NULL: a folder. */
	const char *plan;
	uint64_t reserved_more[4];
};

/* Makes a root, "/NAME": a job where there is a plan, else a folder. -EEXIST.
 * `options` may be NULL. */
AQ_API int aq_job_create(struct aq_rack *rack, const char *path,
			 const struct aq_job_options *options);
/* Renews what the path names, its parents and all below it; *period_ms, which
 * may be NULL, is how long that lasts: renew when a third of it is over.
 * -ENOENT: there is no such name. */
AQ_API int aq_job_renew(struct aq_rack *rack, const char *path,
			uint32_t *period_ms);

/* Makes a folder or a task, and folders that are missing on the way. */
AQ_API int aq_name_make(struct aq_rack *rack, const char *path);
/* -EEXIST: something has the new name. */
AQ_API int aq_name_move(struct aq_rack *rack, const char *path, const char *to);
/* -ENOTEMPTY: something lies below, and is_recursive is not set. */
AQ_API int aq_name_remove(struct aq_rack *rack, const char *path,
			  bool is_recursive);

struct aq_name {
	char path[AQ_NAME_MAX];
	enum aq_name_kind kind;
	bool is_ready;	     /* false: at the vault, on its way, or lost */
	uint64_t used_bytes; /* of a file or queue, as nodes said lately */
	uint64_t reserved_more[4];
};
AQ_API int aq_name_stat(struct aq_rack *rack, const char *path,
			struct aq_name *out);
/* What lies directly below; "/": all roots. Other than 0 ends it, and is the
 * result. */
typedef int (*aq_name_fn)(const struct aq_name *name, void *user);
AQ_API int aq_name_each(struct aq_rack *rack, const char *path, aq_name_fn each,
			void *user);

/*
 * Writes it, or all below it, to the rack's vault, and waits for the end. Who
 * uses it goes on; what was acknowledged before the call is in the image. -EIO:
 * the vault did not take it.
 */
AQ_API int aq_name_flush(struct aq_rack *rack, const char *path,
			 uint32_t timeout_ms);
/*
 * The same, and the image of each file, queue and store is what all of it was
 * at one moment: changes wait until their block is saved, for ten seconds at
 * most; reads go on. -EIO: also that it took longer.
 */
AQ_API int aq_name_flush_frozen(struct aq_rack *rack, const char *path,
				uint32_t timeout_ms);
/*
 * Brings back what was lost or is at the vault. With is_back also what is
 * there: it becomes what it was when it was flushed last, and who has it open
 * gets -ESTALE. -ENOENT: it has no image; -EIO: the image is damaged, or cannot
 * be read.
 */
AQ_API int aq_name_load(struct aq_rack *rack, const char *path, bool is_back,
			uint32_t timeout_ms);

/* ---- files --------------------------------------------------------------- */

/* `options` may be NULL. The caller owns *out; it must be closed before the
 * rack. */
AQ_API int aq_file_open(struct aq_rack *rack, const char *path,
			const struct aq_elastic_options *options,
			struct aq_file **out);
/* NULL is allowed. */
AQ_API void aq_file_close(struct aq_file *file);

/*
 * Appends a record: all of it or nothing, at an offset that nothing else has.
 * Any number of writers may append at the same time. *offset may be NULL.
 */
AQ_API int aq_file_append(struct aq_file *file, const void *data,
			  size_t len_bytes, uint64_t *offset);

struct aq_record {
	const void *data;
	size_t len_bytes;
	uint64_t offset; /* is written */
};
/* Several, in this order, with others' records perhaps between them. *done says
 * how many were appended, from the first on; also on failure. */
AQ_API int aq_file_append_many(struct aq_file *file, struct aq_record *records,
			       unsigned count, unsigned *done);

/* Reads up to len_bytes; *got is less only at the end, and 0 there. */
AQ_API int aq_file_read(struct aq_file *file, uint64_t offset, void *data,
			size_t len_bytes, size_t *got);
/* Bytes, now. */
AQ_API int aq_file_size(struct aq_file *file, uint64_t *size_bytes);
/* Nothing is appended any more, by anybody. */
AQ_API int aq_file_seal(struct aq_file *file);
/* The largest record. */
AQ_API uint64_t aq_file_record_max(const struct aq_file *file);

/* ---- queues -------------------------------------------------------------- */

AQ_API int aq_queue_open(struct aq_rack *rack, const char *path,
			 const struct aq_elastic_options *options,
			 struct aq_queue **out);
AQ_API void aq_queue_close(struct aq_queue *queue);

/* Waits for room for so long; 0: not at all. -EAGAIN: the bound is reached. */
AQ_API int aq_queue_put(struct aq_queue *queue, const void *data,
			size_t len_bytes, uint32_t timeout_ms);

struct aq_item {
	void *data;	  /* of a put: is only read */
	size_t len_bytes; /* of a get: room before, length after */
};
/* Several, in this order, with others' items perhaps between them. */
AQ_API int aq_queue_put_many(struct aq_queue *queue,
			     const struct aq_item *items, unsigned count,
			     uint32_t timeout_ms, unsigned *done);

/*
 * Takes the oldest item. Waits for one for so long; -EAGAIN: there is none.
 * -EMSGSIZE: it is longer than room_bytes, *len_bytes says how long, and it
 * stays. An item that was taken by a process that dies at this moment may be
 * lost with it: aq_queue_take is for who cannot have that.
 */
AQ_API int aq_queue_get(struct aq_queue *queue, void *data, size_t room_bytes,
			size_t *len_bytes, uint32_t timeout_ms);
/* Up to `count`, at least one; waits for the first only. */
AQ_API int aq_queue_get_many(struct aq_queue *queue, struct aq_item *items,
			     unsigned count, uint32_t timeout_ms,
			     unsigned *done);

/* Which item is acknowledged. */
struct aq_taken {
	uint64_t block;
	uint64_t name;
};
/* The same as get, but the item comes back, before all younger ones, when this
 * process ends without having acknowledged it, or has no connection to the node
 * for two seconds; aq_queue_ack is -ESTALE then. It counts for the bound until
 * then. */
AQ_API int aq_queue_take(struct aq_queue *queue, void *data, size_t room_bytes,
			 size_t *len_bytes, struct aq_taken *taken,
			 uint32_t timeout_ms);
AQ_API int aq_queue_ack(struct aq_queue *queue, const struct aq_taken *taken);

/* Items now, also those that are taken and not acknowledged. */
AQ_API int aq_queue_length(struct aq_queue *queue, uint64_t *items);
/* Nothing is put any more, by anybody. */
AQ_API int aq_queue_seal(struct aq_queue *queue);
/* The largest item. */
AQ_API uint64_t aq_queue_item_max(const struct aq_queue *queue);

/* ---- key-value stores ---------------------------------------------------- */

/*
 * Keys of up to 64 KiB, or an eighth of a smaller block; values of up to a
 * block. A block that is full to 95 % gives half of its bytes to a new one, one
 * below 5 % all of them to a neighbour, while all are in use; who changes a key
 * and finds a block like that moves them.
 *
 * A version is never used twice for a key.
 */
#define AQ_EKV_ANY    UINT64_MAX /* instead of a version: whichever it has */
#define AQ_EKV_ABSENT 0		 /* there must be no such key */

AQ_API int aq_ekv_open(struct aq_rack *rack, const char *path,
		       const struct aq_elastic_options *options,
		       struct aq_ekv **out);
AQ_API void aq_ekv_close(struct aq_ekv *kv);

/* -EMSGSIZE: the value is longer than room_bytes, *len_bytes says how long.
 * *version may be NULL. */
AQ_API int aq_ekv_get(struct aq_ekv *kv, const void *key, size_t key_bytes,
		      void *value, size_t room_bytes, size_t *len_bytes,
		      uint64_t *version);
/* `expect` is the version that the key must have, AQ_EKV_ANY or AQ_EKV_ABSENT;
 * -ECANCELED: it has another one, -EEXIST: it is there. *version is that of
 * the new value, and may be NULL. */
AQ_API int aq_ekv_put(struct aq_ekv *kv, const void *key, size_t key_bytes,
		      const void *value, size_t value_bytes, uint64_t expect,
		      uint64_t *version);
AQ_API int aq_ekv_delete(struct aq_ekv *kv, const void *key, size_t key_bytes,
			 uint64_t expect);

enum aq_ekv_how {
	AQ_EKV_SUM,
	AQ_EKV_MIN,
	AQ_EKV_MAX,
};
/* Values of eight bytes, little endian; a key that is not there gets the
 * operand. *result may be NULL. -EINVAL: the value is no such number. */
AQ_API int aq_ekv_add(struct aq_ekv *kv, const void *key, size_t key_bytes,
		      enum aq_ekv_how how, int64_t operand, int64_t *result);
/* Bytes at the end of the value; *total_bytes, its length then, may be NULL. */
AQ_API int aq_ekv_append(struct aq_ekv *kv, const void *key, size_t key_bytes,
			 const void *data, size_t len_bytes,
			 uint64_t *total_bytes);

enum aq_ekv_verb {
	AQ_EKV_GET = 1,
	AQ_EKV_PUT,
	AQ_EKV_DELETE,
	AQ_EKV_ADD,
};
/* Zero-initialise it. */
struct aq_ekv_op {
	enum aq_ekv_verb verb;
	int error; /* is written: 0, or -errno as of the call for one key */
	const void *key;
	size_t key_bytes;
	void *value;	    /* of a put: is only read */
	size_t value_bytes; /* of a get: room before, length after */
	/* Of a put or delete: as `expect`. Of a get or put, after: the
	 * value's. */
	uint64_t version;
	enum aq_ekv_how how; /* of an add */
	int64_t number;	     /* of an add: operand before, result after */
	uint64_t reserved[4];
};
/*
 * Several operations on any keys, in as few messages as they fit into: one to
 * each node that has some of the keys, all under way at once. Those on the same
 * key happen in this order, others in any; only a get whose answer was lost
 * with its connection may see what comes after it. 0: all were answered,
 * `error` of each says how. Else the first reason why some were not, which is
 * the error of these, too: a change among them may have happened or not.
 */
AQ_API int aq_ekv_many(struct aq_ekv *kv, struct aq_ekv_op *ops,
		       unsigned count);

struct aq_ekv_scan;
struct aq_ekv_entry {
	const void *key; /* until the next call */
	size_t key_bytes;
	size_t value_bytes;
	uint64_t version;
};
/* All keys, in an order of its own. One that is there all the time comes once;
 * one that is put or deleted meanwhile may come or not. */
AQ_API int aq_ekv_scan_begin(struct aq_ekv *kv, struct aq_ekv_scan **out);
/* -ENODATA: that was all. */
AQ_API int aq_ekv_scan_next(struct aq_ekv_scan *scan,
			    struct aq_ekv_entry *entry);
AQ_API void aq_ekv_scan_end(struct aq_ekv_scan *scan);

/* Keys and bytes in use, now, and over how many blocks. */
struct aq_ekv_stat {
	uint64_t keys;
	uint64_t used_bytes;
	uint64_t blocks;
	uint64_t reserved[5];
};
AQ_API int aq_ekv_stat(struct aq_ekv *kv, struct aq_ekv_stat *out);
AQ_API size_t aq_ekv_key_max(const struct aq_ekv *kv);
AQ_API uint64_t aq_ekv_value_max(const struct aq_ekv *kv, size_t key_bytes);

/* ---- watching ------------------------------------------------------------ */

enum aq_event_kind {
	AQ_EVENT_APPEND = 1, /* a record of length_bytes at offset `value` */
	AQ_EVENT_PUT,	     /* an item; `data` has its first bytes */
	AQ_EVENT_GET,	     /* an item was taken */
	AQ_EVENT_ACK,	     /* one that was taken is acknowledged */
	AQ_EVENT_BACK,	     /* one came back from a consumer that is gone */
	AQ_EVENT_SET,	     /* a key: `data`; its version: `value` */
	AQ_EVENT_DELETE,
	AQ_EVENT_ADD,  /* a key: `data`; the new number, or length: `value` */
	AQ_EVENT_SEAL, /* nothing is added any more */
	/* Events of any kind are missing here, because they were not read in
	 * time: `value` says how many; 0: it is not known. */
	AQ_EVENT_LOST = 31,
};

enum {
	AQ_EVENT_DATA_MAX = 256, /* bytes of a key or an item in an event */
};

struct aq_event {
	enum aq_event_kind kind;
	uint64_t value;
	size_t length_bytes; /* of the record, item or key, all of it */
	const void *data;    /* until the next call */
	size_t data_bytes;
	uint64_t block; /* where it happened: its number in the object */
	uint64_t reserved[4];
};

/* Zero-initialise it. */
struct aq_watch_options {
	uint32_t events; /* 1u << AQ_EVENT_...; 0: all kinds. AQ_EVENT_LOST
			  * always comes. */
	uint64_t reserved_more[4];
};

struct aq_watch;

/*
 * What is done to a file, queue or key-value store from now on: each change
 * that is made once, also by programs that die, and each event once. Events of
 * a key come in the order in which they happened, and so do those of a file and
 * the puts of a queue; also while blocks are added and slots move. Nodes keep
 * some hundred or thousand events of a block and wait for nobody: who reads too
 * slowly is told how many it has missed. -EOPNOTSUPP: it has copies, which tell
 * nobody of their events yet.
 */
AQ_API int aq_watch_open(struct aq_rack *rack, const char *path,
			 const struct aq_watch_options *options,
			 struct aq_watch **out);
AQ_API void aq_watch_close(struct aq_watch *watch);
/* Waits for the next event for so long. -EAGAIN: there was none. -ESTALE: what
 * was watched is gone. */
AQ_API int aq_watch_next(struct aq_watch *watch, struct aq_event *event,
			 uint32_t timeout_ms);
/* Becomes readable when aq_watch_next may have something; it may also have
 * nothing then. Only once that has said -EAGAIN. Closed by aq_watch_close. */
AQ_API int aq_watch_fd(const struct aq_watch *watch);
/* "put" etc. */
AQ_API const char *aq_event_name(enum aq_event_kind kind);

#ifdef __cplusplus
}
#endif

#endif
