import react from '@vitejs/plugin-react';

export default {
  plugins: [react()],
  base: './',
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  build: { target: 'es2022', minify: false, chunkSizeWarningLimit: 100000 },
};
