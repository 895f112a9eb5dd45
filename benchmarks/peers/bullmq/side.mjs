// The processes of BullMQ: node side.mjs INSTALLED work|produce|prepare URL PAYLOAD CONCURRENCY
// They do what `../side.py` does for the peers in Python, with the same files and lines.

import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { createRequire } from 'node:module';

const [installed, role, url, payload, concurrency] = process.argv.slice(2);
const { Queue, Worker } = createRequire(path.join(installed, 'package.json'))('bullmq');
const QUEUE = 'bench';
const BATCH = 1000;
const LOST_AFTER_MS = 20000;
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const data = JSON.parse(payload);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// What `benchmarks/gauges.py` reads: a counter of 8 bytes, and 24 bytes for each start.
class Gauge {
  constructor(folder) {
    const name = path.join(folder, String(process.pid));
    this.starts = fs.openSync(`${name}.starts`, 'a');
    fs.writeFileSync(`${name}.new`, Buffer.alloc(8));
    this.counter = fs.openSync(`${name}.new`, 'r+');
    fs.renameSync(`${name}.new`, `${name}.count`);
    this.count = 0;
    this.buffer = Buffer.alloc(8);
    this.pending = false;
  }

  ran() {
    this.count += 1;
    // Node cannot map a file, and a write for each job would be dear: they are told together.
    if (!this.pending) {
      this.pending = true;
      setTimeout(() => this.tell(), 2);
    }
  }

  tell() {
    this.pending = false;
    this.buffer.writeBigInt64LE(BigInt(this.count));
    fs.writeSync(this.counter, this.buffer, 0, 8, 0);
  }

  noteStart(number) {
    const entry = Buffer.alloc(24);
    entry.writeBigInt64LE(BigInt(number), 0);
    entry.writeBigInt64LE(process.hrtime.bigint(), 8);
    entry.writeBigInt64LE(BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6)), 16);
    fs.writeSync(this.starts, entry);
  }
}

// The starts that the workers have noted.
class Starts {
  constructor(folder) {
    this.folder = folder;
    this.read = new Map();
  }

  fresh() {
    const found = new Map();
    for (const name of fs.readdirSync(this.folder)) {
      if (!name.endsWith('.starts')) continue;
      const text = fs.readFileSync(path.join(this.folder, name));
      const whole = text.length - (text.length % 24);
      for (let at = this.read.get(name) ?? 0; at < whole; at += 24) {
        found.set(Number(text.readBigInt64LE(at)), text.readBigInt64LE(at + 8));
      }
      this.read.set(name, whole);
    }
    return found;
  }
}

function work() {
  const gauge = new Gauge(process.env.BENCHMARK_GAUGES);
  const handle = async (job) => {
    if (job.name === 'note') gauge.noteStart(job.data.number);
    gauge.ran();
  };
  const worker = new Worker(QUEUE, handle, {
    connection,
    concurrency: Number(concurrency),
    removeOnComplete: { count: 0 },
  });
  worker.on('error', (error) => console.error(error));
  // The driver never writes: the line ends when it does, however that happens.
  process.stdin.on('end', () => process.exit(0)).resume();
}

const wishes = {
  async bulk(queue, jobs) {
    for (let start = 0; start < jobs; start += BATCH) {
      const count = Math.min(BATCH, jobs - start);
      await queue.addBulk(Array.from({ length: count }, () => ({ name: 'count', data })));
    }
    return [];
  },

  async single(queue, jobs) {
    for (let n = 0; n < jobs; n += 1) await queue.add('count', data);
    return [];
  },

  async due(queue, jobs, due) {
    for (let start = 0; start < jobs; start += BATCH) {
      const delay = Math.max(0, Math.ceil(due * 1000 - Date.now()));
      const count = Math.min(BATCH, jobs - start);
      const entry = (_, n) => ({ name: 'note', data: { number: start + n }, opts: { delay } });
      await queue.addBulk(Array.from({ length: count }, entry));
    }
    return [];
  },

  async latency(queue, jobs) {
    const starts = new Starts(process.env.BENCHMARK_GAUGES);
    starts.fresh();
    const found = [];
    for (let number = 0; number < jobs; number += 1) {
      await sleep(5 + 9 * Math.random());
      const called = process.hrtime.bigint();
      await queue.add('note', { number });
      found.push(Number((await started(starts, number)) - called) / 1e6);
    }
    return found;
  },
};

async function started(starts, number) {
  const deadline = Date.now() + LOST_AFTER_MS;
  while (Date.now() < deadline) {
    const at = starts.fresh().get(number);
    if (at !== undefined) return at;
    await sleep(1);
  }
  throw new Error(`job ${number} did not start`);
}

async function produce() {
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [wish, count, due] = line.split(' ');
    const cpu = process.cpuUsage();
    const began = process.hrtime.bigint();
    const samples = await wishes[wish](queue, Number(count), Number(due));
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    const { user, system } = process.cpuUsage(cpu);
    console.log(JSON.stringify({ seconds, cpu_ns: (user + system) * 1000, samples }));
  }
  process.exit(0);
}

if (role === 'work') work();
else if (role === 'produce') await produce();
